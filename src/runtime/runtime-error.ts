// Errors of starting and stopping a process. What a step throws while it starts is passed on as it is.
import { CodedError } from "../errors/coded-error.ts";

export class RuntimeError extends CodedError<"RuntimeError"> {
  override readonly name = "RuntimeError";
}
