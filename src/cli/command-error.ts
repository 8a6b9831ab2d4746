// The error of a command that could not do what the user asked. The message names the problem and what to do about it;
// the code determines the exit code, which scripts rely on.
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";

export type CommandErrorCode = ErrorCode<"CommandError">;

export class CommandError extends CodedError<"CommandError"> {
  override readonly name = "CommandError";
}
