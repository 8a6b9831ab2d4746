// The error of the vault. Its message names the operation, the keyring or key and the item's name; it never contains a
// value, a key or a token (K7).
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";

export type VaultErrorCode = ErrorCode<"VaultError">;

export class VaultError extends CodedError<"VaultError"> {
  override readonly name = "VaultError";
}

/** For a request that no vault accepts. */
export function invalid(message: string): VaultError {
  return new VaultError("invalid", message);
}

// A name comes from the caller, and may be as long as a whole request.
const nameCharsMax = 100;

/** The same text for every defect of a ciphertext, so that it does not reveal which one. */
export function undecryptable(item?: string): VaultError {
  const what =
    item === undefined ? "the value" : `the value of ${JSON.stringify(item.slice(0, nameCharsMax))}`;
  return new VaultError("undecryptable", `${what} cannot be decrypted with this keyring`);
}
