// Why an agent cannot start. Errors of the start and stop order itself are RuntimeErrors.

export type AgentErrorCode =
  /** A file that the configuration names cannot be read, or does not hold what it should. */
  | "file_unusable"
  /** Neither the configuration nor the environment says how to reach a cluster. */
  | "cluster_unknown"
  /** What the agent needs did not answer, or refused it, while it started. */
  | "start_failed";

export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly code: AgentErrorCode;

  constructor(code: AgentErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
