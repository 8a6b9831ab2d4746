// Why the PostgreSQL in the data folder does not run. Each message says what to do.

export type EmbeddedErrorCode =
  /** The optional package is not installed, or has nothing for this platform. */
  | "binaries_missing"
  /** The folder holds something else, or cannot be used by the account of the database. */
  | "data_dir_unusable"
  /** Another server runs on the same folder. */
  | "data_dir_in_use"
  /** It did not start, or ended by itself. */
  | "database_failed";

export class EmbeddedError extends Error {
  override readonly name = "EmbeddedError";
  readonly code: EmbeddedErrorCode;

  constructor(code: EmbeddedErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
