// Errors that keep an agent from starting. Errors of the lifecycle itself are RuntimeErrors.
import { CodedError } from "../errors/coded-error.ts";

export class AgentError extends CodedError<"AgentError"> {
  override readonly name = "AgentError";
}
