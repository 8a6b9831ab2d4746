// What keeps `krane dev` from starting or an action from being done, in words for the person at the keyboard.
import { CodedError } from "../errors/coded-error.ts";

export class DevError extends CodedError<"DevError"> {
  override readonly name = "DevError";
}
