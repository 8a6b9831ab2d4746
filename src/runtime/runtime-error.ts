// Errors of starting and stopping a process. What a step throws while it starts is passed on as it is.

export type RuntimeErrorCode =
  /** Something that runs until it is stopped ended with an error. */
  | "task_failed"
  /** A clean-up threw. */
  | "stop_failed"
  /** A clean-up was still running when the time for stopping was over. */
  | "stop_timed_out";

export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly code: RuntimeErrorCode;

  constructor(code: RuntimeErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
