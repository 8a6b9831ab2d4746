// Why `krane dev` does not start or an action failed, in words for the user.
import { CodedError } from "../errors/coded-error.ts";

export class DevError extends CodedError<"DevError"> {
  override readonly name = "DevError";
}
