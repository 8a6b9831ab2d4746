// Why the embedded PostgreSQL does not run. Each message says what to do.
import { CodedError } from "../../errors/coded-error.ts";

export class EmbeddedError extends CodedError<"EmbeddedError"> {
  override readonly name = "EmbeddedError";
}
