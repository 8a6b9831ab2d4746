// Errors of the agent's own life. What a step throws is passed on as it is.
import { CodedError } from "../errors/coded-error.ts";

export class AgentError extends CodedError<"AgentError"> {
  override readonly name = "AgentError";
}
