// What a vault does for its callers, wherever it is: within this process (embedded) or
// behind VaultService (remote). Values are encrypted with data keys that belong to a
// keyring; krane uses one keyring per environment.
//
// - A context is the name of the thing a value belongs to. It is bound into new
//   ciphertext, which then opens under that name only. Ciphertext that is not bound
//   opens under any, so a caller that knows the name always sends it.
// - Bulk calls are all or nothing.
// - Every failure is a VaultError, but for the reason of the caller's own signal.

export interface EncryptedValue {
  /** Base64 of a `vault.v1.Encrypted`; opaque to everybody but a vault. */
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
  /** All or nothing. The ciphertexts are bound to their keys in the map only when asked for. */
  encryptBulk(
    request: {
      readonly keyring: string;
      readonly items: ReadonlyMap<string, string>;
      readonly bindItemNames?: boolean | undefined;
    },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, EncryptedValue>>;
  /** All or nothing. The key of each item is its context. */
  decryptBulk(
    request: { readonly keyring: string; readonly items: ReadonlyMap<string, string> },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>>;
  /** Opens a value and closes it again with the newest data key of the keyring, bound to the context. */
  reEncrypt(
    request: { readonly keyring: string; readonly encrypted: string; readonly context?: string | undefined },
    signal: AbortSignal,
  ): Promise<EncryptedValue>;
}

/** A vault with something behind it that has to be let go of. */
export interface OpenVault extends Vault {
  /** Ends every call, and resolves when nothing of the vault is left. */
  close(): Promise<void>;
}
