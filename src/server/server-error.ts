// Why a server did not start or did not go on. Each message begins with what to look at.
import { CodedError } from "../errors/coded-error.ts";

export class ServerError extends CodedError<"ServerError"> {
  override readonly name = "ServerError";
}
