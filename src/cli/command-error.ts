// What a command for a person ends with when it cannot do what was asked. The message names what is wrong and
// what to do about it; the code becomes the exit code, which scripts branch on.
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";

export type CommandErrorCode = ErrorCode<"CommandError">;

export class CommandError extends CodedError<"CommandError"> {
  override readonly name = "CommandError";
}
