// Errors of a running or stopping process. An error that a step throws while it starts is passed on unchanged.
import { CodedError } from "../errors/coded-error.ts";

export class RuntimeError extends CodedError<"RuntimeError"> {
  override readonly name = "RuntimeError";
}
