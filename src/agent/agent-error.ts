// Why an agent cannot start. Errors of the start and stop order itself are RuntimeErrors.
import { CodedError } from "../errors/coded-error.ts";

export class AgentError extends CodedError<"AgentError"> {
  override readonly name = "AgentError";
}
