// The interface of a vault, embedded in this process or remote (VaultService). Values are encrypted with the data keys of
// a keyring; krane uses one keyring per environment.
//
// - A context is the name that a value belongs to. It is bound into new ciphertext, which then decrypts only with that
//   name. Ciphertext that is not bound decrypts with any name, so a caller that knows the name always sends it.
// - Bulk calls are all or nothing.
// - Every failure is a VaultError, except for an abort, which rejects with the signal's reason.

export interface EncryptedValue {
  /** Base64 of a `vault.v1.Encrypted`; opaque outside of the vault. */
  readonly encrypted: string;
  /** The data key that was used. */
  readonly keyId: string;
}

export interface Vault {
  /** One value. `context` is the item's name, bound into new ciphertext. */
  encrypt(
    request: { readonly keyring: string; readonly data: string; readonly context?: string | undefined },
    signal: AbortSignal,
  ): Promise<EncryptedValue>;
  decrypt(
    request: { readonly keyring: string; readonly encrypted: string; readonly context?: string | undefined },
    signal: AbortSignal,
  ): Promise<string>;
  /** All or nothing. With `bindItemNames`, each ciphertext is bound to its key in the map. */
  encryptBulk(
    request: {
      readonly keyring: string;
      readonly items: ReadonlyMap<string, string>;
      readonly bindItemNames?: boolean;
    },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, EncryptedValue>>;
  /** All or nothing. The key of each item is its context. */
  decryptBulk(
    request: { readonly keyring: string; readonly items: ReadonlyMap<string, string> },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>>;
  /** Decrypts a value and encrypts it again with the newest data key of the keyring, bound to the context. */
  reEncrypt(
    request: { readonly keyring: string; readonly encrypted: string; readonly context?: string | undefined },
    signal: AbortSignal,
  ): Promise<EncryptedValue>;
}

/** A vault with resources that have to be closed. */
export interface OpenVault extends Vault {
  /** Ends every call, and resolves when all resources are released. */
  close(): Promise<void>;
}
