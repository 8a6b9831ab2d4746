// The error of `krane exec`. Each message ends with what to do, because all that its reader sees is a container that
// does not start. No message contains a value or a token (K7).
import { CodedError } from "../../errors/coded-error.ts";

export class ExecError extends CodedError<"ExecError"> {
  override readonly name = "ExecError";
}
