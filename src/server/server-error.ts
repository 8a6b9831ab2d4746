// Why a server did not start or did not go on. Each message begins with what to look at.

export type ServerErrorCode =
  /** The database cannot be reached or refuses us. */
  | "database_unusable"
  /** A file with tokens is there, and cannot be read. */
  | "tokens_unreadable"
  /** Agents and people have a token in common. */
  | "tokens_shared";

export class ServerError extends Error {
  override readonly name = "ServerError";
  readonly code: ServerErrorCode;

  constructor(code: ServerErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
