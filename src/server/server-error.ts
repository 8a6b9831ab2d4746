// Why a server failed to start or stopped. Each message begins with what to check.
import { CodedError } from "../errors/coded-error.ts";

export class ServerError extends CodedError<"ServerError"> {
  override readonly name = "ServerError";
}
