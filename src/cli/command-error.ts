// What a command for a person ends with when it cannot do what was asked. The message names what is wrong and
// what to do about it; the code becomes the exit code, which scripts branch on.

export type CommandErrorCode =
  /** The control plane said no, or something did not become so in time. */
  | "failed"
  /** There is no such object, context or file. */
  | "not_found"
  /** The command line asks for something that makes no sense. */
  | "usage"
  /** Nobody answers at the address of the control plane. */
  | "unreachable"
  /** The token is not known, or may not do this. */
  | "denied"
  /** The context, or a file it names, is wrong. */
  | "config";

export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly code: CommandErrorCode;

  constructor(code: CommandErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
