// The only place that decides what a failure means.
//
// - rejected: this object as it is will never be accepted. It is parked, visible with its reason, and
//   tried again when its desired state changes, and now and then in case the server has changed.
// - slow: something around the object is missing or forbidden (a namespace, a CRD, a right, a quota).
//   It may be put right at any time, but asking every second does not help.
// - retry: nothing is known to be wrong; the next attempt may succeed.
// - A failure that is none of these is a bug, and is not hidden here.
import { DeadlineError } from "../concurrency/abort.ts";
import { type BackoffOptions, clampRetryAfterMs } from "../concurrency/backoff.ts";
import { CircuitOpenError } from "../concurrency/circuit-breaker.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import { KubeApiError } from "../kube/errors.ts";
import type { FieldProblem } from "../model/field-problem.ts";
import { describeProblems } from "../model/field-problem.ts";

export type FailureClass = "rejected" | "slow" | "retry";

export interface Failure {
  readonly kind: FailureClass;
  readonly reason: string;
  readonly fieldPath?: string;
  /** A server's hint, already clamped. */
  readonly atLeastMs?: number;
}

/** How long a key waits after each kind of failure. */
export const backoffs: Readonly<Record<FailureClass | "conflict" | "contested", BackoffOptions>> = {
  rejected: { initialMs: 60_000, maxMs: 600_000, jitter: "equal" },
  slow: { initialMs: 4_000, maxMs: 60_000, jitter: "equal" },
  retry: { initialMs: 500, maxMs: 60_000, jitter: "equal" },
  // The other object has to go first, and krane does not see it go.
  conflict: { initialMs: 20_000, maxMs: 600_000, jitter: "equal" },
  contested: { initialMs: 10_000, maxMs: 600_000, jitter: "equal" },
};

/** undefined for what is not an answer of Kubernetes: a bug. */
export function classifyFailure(error: unknown): Failure | undefined {
  if (error instanceof DeadlineError) return { kind: "retry", reason: error.message };
  if (!(error instanceof KubeApiError)) return undefined;
  const reason = error.message;
  const fieldPath = error.causes.find(({ field }) => field !== undefined && field !== "")?.field;
  const where = fieldPath === undefined ? {} : { fieldPath };
  const hint = error.retryAfterMs === undefined ? {} : { atLeastMs: clampRetryAfterMs(error.retryAfterMs) };
  switch (error.code) {
    case "invalid-name":
      return { kind: "rejected", reason };
    case "credentials":
      return { kind: "slow", reason };
    case "refused":
      if (saysAnotherObject(error)) return { kind: "retry", reason };
      return { kind: classOfStatus(error.status ?? 0), reason, ...where, ...hint };
    default:
      return { kind: "retry", reason, ...hint };
  }
}

// The uid in an apply is a precondition. The server calls another object under the name invalid instead
// of a conflict; parking it would leave a recreated object alone for minutes, where one more look helps.
function saysAnotherObject({ status, causes }: KubeApiError): boolean {
  return status === 422 && causes.some(({ field }) => field === "metadata.uid");
}

function classOfStatus(status: number): FailureClass {
  if (status === 400 || status === 413 || status === 422) return "rejected";
  // What the server may answer differently in a moment, without anybody doing anything about it.
  if (status === 408 || status === 409 || status === 410 || status === 429 || status >= 500) return "retry";
  return "slow";
}

export function classifyProblems(problems: readonly FieldProblem[]): Failure {
  const fieldPath = problems[0]?.path;
  const where = fieldPath === undefined ? {} : { fieldPath };
  return { kind: "rejected", reason: describeProblems(problems), ...where };
}

/** A namespace, or a kind, that is not there; the two cannot be told apart by the answer. */
export function saysNothingThere(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === "refused" && error.status === 404;
}

/** Somebody else has the name, or changed the object since krane looked. */
export function saysConflict(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === "refused" && error.status === 409;
}

/** The server takes what was sent for wrong in itself. */
export function saysInvalid(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 422 && !saysAnotherObject(error);
}

/** The server is well, and refuses this one request. */
export function saysNo(error: unknown): boolean {
  if (!(error instanceof KubeApiError) || error.code !== "refused") return false;
  const { status = 0 } = error;
  return status < 500 && status !== 429;
}

export type ReportFailure =
  /** It has what was to be said, in its own way. */
  | { readonly kind: "delivered" }
  /** It does not want to hear this; done until there is something else to say. */
  | { readonly kind: "refused" }
  | { readonly kind: "retry"; readonly atLeastMs?: number };

/** undefined for what is not an answer of the control plane: a bug. */
export function classifyReport(error: unknown, change: "update" | "delete"): ReportFailure | undefined {
  if (error instanceof CircuitOpenError) return { kind: "retry", atLeastMs: error.retryAfterMs };
  if (!(error instanceof ControlPlaneError)) return undefined;
  // Servers whose row is gone answer `unknown` to the report that the object is gone, too.
  if (change === "delete" && isUnknownName(error)) return { kind: "delivered" };
  if (error.code === "not_found" || error.code === "invalid_argument") return { kind: "refused" };
  return error.retryAfterMs === undefined
    ? { kind: "retry" }
    : { kind: "retry", atLeastMs: error.retryAfterMs };
}

function isUnknownName({ code }: ControlPlaneError): boolean {
  return code === "not_found" || code === "unknown";
}

const unwellCodes: ReadonlySet<string> = new Set(["unavailable", "deadline_exceeded", "internal", "unknown"]);

/** Whether the error says that the control plane is unwell; a refusal of one report does not. */
export function speaksOfHealth(error: unknown): boolean {
  return error instanceof ControlPlaneError ? unwellCodes.has(error.code) : false;
}
