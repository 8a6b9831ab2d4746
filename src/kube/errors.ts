// The error that the Kubernetes layer throws. Callers branch on its code; status, reason and causes come from the API
// server, if it sent any.
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";
import type { KubeStatus, KubeStatusCause } from "./types.ts";

export type KubeErrorCode = ErrorCode<"KubeApiError">;

export interface KubeApiErrorFacts {
  readonly status?: number;
  readonly reason?: string;
  readonly causes?: readonly KubeStatusCause[];
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class KubeApiError extends CodedError<"KubeApiError"> {
  override readonly name = "KubeApiError";
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly causes: readonly KubeStatusCause[];
  readonly retryAfterMs: number | undefined;

  constructor(code: KubeErrorCode, message: string, facts: KubeApiErrorFacts = {}) {
    super(code, message, facts);
    this.status = facts.status;
    this.reason = facts.reason;
    this.causes = facts.causes ?? [];
    this.retryAfterMs = facts.retryAfterMs;
  }

  /** 410 as a status or as a reason: the resourceVersion or continue token is too old; list again. */
  get isExpired(): boolean {
    return this.status === 410 || this.reason === "Expired" || this.reason === "Gone";
  }
}

// A status message can quote the whole object that was sent; a log line must not.
const messageCharsMax = 1_000;

/** The error for a response that is not a success; `what` names the operation and the object. */
export function refusedError(what: string, answer: RefusedAnswer): KubeApiError {
  const status = parseStatus(answer.body);
  const code = answer.status >= 400 ? answer.status : (status?.code ?? answer.status);
  const reason = status?.reason;
  const text = status?.message ?? (typeof answer.body === "string" ? answer.body.trim() : "");
  const retryAfterSeconds = answer.retryAfterSeconds ?? status?.details?.retryAfterSeconds;
  const label = reason === undefined || reason === "" ? `${code}` : `${code} ${reason}`;
  return new KubeApiError("refused", `${what}: ${[label, clip(text)].filter(Boolean).join(": ")}`, {
    status: code,
    ...(reason === undefined || reason === "" ? {} : { reason }),
    ...(status?.details?.causes === undefined ? {} : { causes: status.details.causes }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterMs: retryAfterSeconds * 1_000 }),
  });
}

/** The response to a request that carried a secret, without the server's message about it. */
export function withoutServerMessage<A extends RefusedAnswer>(answer: A): A {
  const { reason, details } = parseStatus(answer.body) ?? {};
  const message = "the server's message is left out, because it may quote the secret";
  const causes = details?.causes?.map((cause) => {
    const { message: words, ...rest } = cause;
    // This one comes from the server itself, and names only a field and its owner.
    return cause.reason === "FieldManagerConflict"
      ? { ...rest, ...(words !== undefined && { message: words }) }
      : rest;
  });
  const body: KubeStatus = {
    apiVersion: "v1",
    kind: "Status",
    message,
    ...(reason !== undefined && { reason }),
    details: { ...details, ...(causes && { causes }) },
  };
  return { ...answer, body };
}

export interface RefusedAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfterSeconds?: number;
}

/** The body as a Status, or undefined if it is something else (an object, a proxy's error page). */
export function parseStatus(body: unknown): KubeStatus | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  return "kind" in body && body.kind === "Status" ? (body as KubeStatus) : undefined;
}

function clip(text: string): string {
  return text.length > messageCharsMax ? `${text.slice(0, messageCharsMax)}...` : text;
}

/** The credentials lack a permission, or an admission policy refused. */
export function isForbidden(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 403;
}
