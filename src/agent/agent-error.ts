// Errors of the agent's own life. What a step throws is passed on as it is.

export type AgentErrorCode =
  /** A file that the configuration names cannot be read, or does not hold what it should. */
  | "file_unusable"
  /** Neither the configuration nor the environment says how to reach a cluster. */
  | "cluster_unknown"
  /** What the agent needs did not answer, or refused it, while it started. */
  | "start_failed"
  /** Something that runs until it is stopped ended with an error. */
  | "task_failed"
  /** A clean-up threw. */
  | "stop_failed"
  /** A clean-up was still running when the time for stopping was over. */
  | "stop_timed_out";

export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly code: AgentErrorCode;

  constructor(code: AgentErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
