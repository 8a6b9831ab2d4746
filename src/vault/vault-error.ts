// The one error of this folder. A message names the operation, the keyring or key and
// the item's name; it never holds a value, a key or a token (K7).

export type VaultErrorCode =
  /** The request is wrong: a keyring that is no name, an empty context, a value that is too large. */
  | "invalid"
  /** The ciphertext is no ciphertext of this keyring and name, or was changed. Never says which. */
  | "undecryptable"
  /** There is no such object in the storage. */
  | "not_found"
  /** The vault refused the token. */
  | "unauthenticated"
  /** The vault or its storage cannot be reached, or is too slow. Asking again may help. */
  | "unavailable"
  /** What is stored cannot be used: an object that is damaged, or under a master key that is not configured. */
  | "unusable_key"
  /** The vault answered that it failed, or what it answered makes no sense. */
  | "internal";

export class VaultError extends Error {
  override readonly name = "VaultError";
  readonly code: VaultErrorCode;

  constructor(code: VaultErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** A request that no vault would take. */
export function invalid(message: string): VaultError {
  return new VaultError("invalid", message);
}

// A name comes from the caller, and may be as long as a whole request.
const nameCharsMax = 100;

/** One text for every way in which a ciphertext can be wrong, so that nobody learns from it which. */
export function undecryptable(item?: string): VaultError {
  const what =
    item === undefined ? "the value" : `the value of ${JSON.stringify(item.slice(0, nameCharsMax))}`;
  return new VaultError("undecryptable", `${what} cannot be decrypted with this keyring`);
}
