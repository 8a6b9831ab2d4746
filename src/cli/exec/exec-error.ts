// Why a command was not run with its secrets. Each message ends in what to do about it, because whoever
// reads it sees a container that does not start, and nothing else. None holds a value or a token (K7).

export type ExecErrorCode =
  /** A variable or file that krane puts into the pod is missing or wrong. */
  | "setup_wrong"
  /** krane said no. */
  | "refused"
  /** krane could not be asked, or could not answer, for as long as we tried. */
  | "unavailable"
  /** krane answered, and no program can be started with the answer. */
  | "unusable"
  /** There is no such command. */
  | "command_missing"
  /** There is, and it is no program. */
  | "command_unusable";

export class ExecError extends Error {
  override readonly name = "ExecError";
  readonly code: ExecErrorCode;

  constructor(code: ExecErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
