// Classifies failures; the only place that decides what a failure means.
//
// - rejected: the server will never accept this object as it is. It is parked with its reason, and retried when its
//   desired state changes, and rarely in between in case the server has changed.
// - slow: something that the object needs is missing or forbidden (a namespace, a CRD, a permission, a quota). It may
//   be fixed at any time, but frequent retries do not help.
// - retry: a transient failure; the next attempt may succeed.
// - Any other error is a bug in krane, and is not classified.
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
  /** The server's Retry-After, already clamped. */
  readonly atLeastMs?: number;
  /** The server failed or did not answer in time; other objects may meet the same. */
  readonly isOfServer?: boolean;
}

/** How long a key waits after each kind of failure. */
export const backoffs: Readonly<Record<FailureClass | "conflict", BackoffOptions>> = {
  rejected: { initialMs: 60_000, maxMs: 600_000, jitter: "equal" },
  slow: { initialMs: 4_000, maxMs: 60_000, jitter: "equal" },
  retry: { initialMs: 500, maxMs: 60_000, jitter: "equal" },
  // The other object has to go first, and krane does not watch it.
  conflict: { initialMs: 20_000, maxMs: 600_000, jitter: "equal" },
};

/** Returns undefined for an error that did not come from Kubernetes: a bug. */
export function classifyFailure(error: unknown): Failure | undefined {
  if (error instanceof DeadlineError) return { kind: "retry", reason: error.message, isOfServer: true };
  if (!(error instanceof KubeApiError)) return undefined;
  const reason = error.message;
  const fieldPath = error.causes.find(({ field }) => field !== undefined && field !== "")?.field;
  const where = fieldPath === undefined ? {} : { fieldPath };
  const hint = error.retryAfterMs === undefined ? {} : { atLeastMs: clampRetryAfterMs(error.retryAfterMs) };
  const blame = error.code === "timeout" || (error.status ?? 0) >= 500 ? { isOfServer: true } : {};
  switch (error.code) {
    case "invalid-name":
      return { kind: "rejected", reason };
    case "credentials":
      return { kind: "slow", reason };
    case "refused":
      if (isUidMismatch(error)) return { kind: "retry", reason };
      return { kind: classOfStatus(error.status ?? 0), reason, ...where, ...hint, ...blame };
    default:
      return { kind: "retry", reason, ...hint, ...blame };
  }
}

// The uid in an apply is a precondition. If the object was recreated, the server answers 422 instead of 409. Parking
// it would leave it alone for minutes, where one retry is enough.
function isUidMismatch({ status, causes }: KubeApiError): boolean {
  return status === 422 && causes.some(({ field }) => field === "metadata.uid");
}

function classOfStatus(status: number): FailureClass {
  if (status === 400 || status === 413 || status === 422) return "rejected";
  // These may pass without anybody fixing anything.
  if (status === 408 || status === 409 || status === 410 || status === 429 || status >= 500) return "retry";
  return "slow";
}

export function classifyProblems(problems: readonly FieldProblem[]): Failure {
  const fieldPath = problems[0]?.path;
  const where = fieldPath === undefined || fieldPath === "" ? {} : { fieldPath };
  return { kind: "rejected", reason: describeProblems(problems), ...where };
}

/** The namespace or the kind is missing; the response does not tell which. */
export function isNotFound(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === "refused" && error.status === 404;
}

/** The name is taken, or the object changed since krane read it. */
export function isConflict(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === "refused" && error.status === 409;
}

/** The server rejected the manifest as invalid. */
export function isInvalid(error: unknown): error is KubeApiError {
  return error instanceof KubeApiError && error.status === 422 && !isUidMismatch(error);
}

/** The request would change a field that nobody can change, such as a selector. */
export function isImmutable(error: unknown): error is KubeApiError {
  return isInvalid(error) && error.message.includes("field is immutable");
}

/** The server, or a policy or webhook of it, does not accept what the request would make of the object. */
export function isRefusedContent(error: unknown): boolean {
  return (
    isInvalid(error) || (error instanceof KubeApiError && error.code === "refused" && error.status === 403)
  );
}

/** The server is healthy and refused this one request. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof KubeApiError) || error.code !== "refused") return false;
  const { status = 0 } = error;
  return status < 500 && status !== 429;
}

export type ReportFailure =
  /** The control plane already has the state that the report carries. */
  | { readonly kind: "delivered" }
  /** The control plane rejected the report; nothing to send until the state changes. */
  | { readonly kind: "refused" }
  | { readonly kind: "retry"; readonly atLeastMs?: number };

/** Returns undefined for an error that did not come from the control plane: a bug. */
export function classifyReport(error: unknown, change: "update" | "delete"): ReportFailure | undefined {
  if (error instanceof CircuitOpenError) return { kind: "retry", atLeastMs: error.retryAfterMs };
  if (!(error instanceof ControlPlaneError)) return undefined;
  // Some servers whose row is gone also answer `unknown` to the report that the object is gone.
  if (change === "delete" && isUnknownObject(error)) return { kind: "delivered" };
  if (error.code === "not_found" || error.code === "invalid_argument") return { kind: "refused" };
  return error.retryAfterMs === undefined
    ? { kind: "retry" }
    : { kind: "retry", atLeastMs: error.retryAfterMs };
}

function isUnknownObject({ code }: ControlPlaneError): boolean {
  return code === "not_found" || code === "unknown";
}

const outageCodes: ReadonlySet<string> = new Set(["unavailable", "deadline_exceeded", "internal", "unknown"]);

/** Whether the error means that the control plane is unhealthy; rejecting one report does not. */
export function isOutage(error: unknown): boolean {
  return error instanceof ControlPlaneError ? outageCodes.has(error.code) : false;
}
