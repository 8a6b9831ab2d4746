// Why a command was not run with its secrets. Each message ends in what to do about it, because whoever
// reads it sees a container that does not start, and nothing else. None holds a value or a token (K7).
import { CodedError } from "../../errors/coded-error.ts";

export class ExecError extends CodedError<"ExecError"> {
  override readonly name = "ExecError";
}
