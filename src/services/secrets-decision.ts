// The outcome of one request for secrets: how it is logged for operators, counted, and reported to the caller. The
// caller never learns the reason: all refusals have the same message, because the difference between "no such pod" and
// "not your deployment" would help an attacker who is guessing.

import { Code, ConnectError } from "@connectrpc/connect";
import { DeadlineError } from "../concurrency/abort.ts";
import { KubeApiError } from "../kube/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { VaultError } from "../vault/vault-error.ts";
import type { TokenRefusal, TokenSubject } from "./token-verdict.ts";
import type { UndecidedReason, UnwantedReason } from "./wanted-workload.ts";
import type { WorkloadRefusal } from "./workload-identity.ts";

/** Something failed before a decision was made. */
export interface Failure {
  readonly kind: "failed";
  readonly reason:
    | "Kubernetes is unavailable"
    | "the vault is unavailable"
    | "timed out"
    | "decryption failed"
    | "the caller disconnected"
    | "internal error";
  readonly error: unknown;
}

export type NotGiven =
  /** The token is not valid. */
  | { readonly kind: "unauthenticated"; readonly reason: TokenRefusal }
  /** The token is valid, but its pod may not have these secrets. */
  | {
      readonly kind: "denied";
      readonly reason:
        | WorkloadRefusal
        | UnwantedReason
        | "asked for another deployment"
        | "asked for another environment";
    }
  /** The pod looks right, but desired state does not confirm it yet. */
  | { readonly kind: "undecided"; readonly reason: UndecidedReason }
  | {
      readonly kind: "limited";
      readonly reason:
        | "too many calls from this address"
        | "too many calls from this pod"
        | "too many tokens";
      /** Logged less than a minute ago: counted, but not logged again. */
      readonly isRepeated: boolean;
    }
  | { readonly kind: "invalid"; readonly reason: "the blob is not the JSON form of SecretsConfig" }
  | Failure;

export type SecretsOutcome = NotGiven | { readonly kind: "allowed"; readonly count: number };

export interface SecretsDecision {
  readonly outcome: SecretsOutcome;
  /** The IP address of the caller; empty within a process. */
  readonly peer: string;
  /** The owner of the token, if known. */
  readonly subject?: TokenSubject | undefined;
  /** As the caller sent them, truncated to the length of an id. */
  readonly askedFor: { readonly deploymentId: string; readonly environmentId: string };
  /** Decided by the rule for pods of the original: the token is for the API server. */
  readonly isOriginal: boolean;
  readonly durationMs: number;
}

/** Writes one line per decision. It never holds a token, a value or the name of a variable (K7). */
export function createDecisionLog(log: Log): (decision: SecretsDecision) => void {
  return ({ outcome, peer, subject, askedFor, isOriginal, durationMs }) => {
    if (outcome.kind === "limited" && outcome.isRepeated) return;
    const line = {
      component: "secrets",
      outcome: outcome.kind,
      host: peer,
      namespace: subject?.namespace,
      name: subject?.podName,
      uid: subject?.podUid,
      deploymentId: askedFor.deploymentId,
      environmentId: askedFor.environmentId,
      durationMs,
    };
    if (outcome.kind === "allowed") {
      const message = isOriginal
        ? "secrets given to a workload of the original"
        : "secrets given to a workload";
      log.info(message, { ...line, count: outcome.count });
    } else if (outcome.kind === "failed") {
      log.error("secrets not given", { ...line, reason: outcome.reason, error: outcome.error });
    } else if (outcome.kind === "undecided") {
      log.warn("secrets not given", { ...line, reason: outcome.reason });
    } else {
      log.warn("secrets refused", { ...line, reason: outcome.reason });
    }
  };
}

/** Classifies an error. A failed lookup is never a refusal. */
export function failureOf(error: unknown, signal: AbortSignal): Failure {
  const failed = (reason: Failure["reason"]): Failure => ({ kind: "failed", reason, error });
  if (signal.aborted) return failed("the caller disconnected");
  if (error instanceof DeadlineError) return failed("timed out");
  if (error instanceof KubeApiError) return failed("Kubernetes is unavailable");
  if (!(error instanceof VaultError)) return failed("internal error");
  const isOutage = error.code === "unavailable" || error.code === "unauthenticated";
  return failed(isOutage ? "the vault is unavailable" : "decryption failed");
}

const refusal = "these secrets are not for this caller";

/** The error that the caller gets. */
export function callerError(outcome: NotGiven): ConnectError {
  switch (outcome.kind) {
    case "unauthenticated":
      return new ConnectError(refusal, Code.Unauthenticated);
    case "denied":
      return new ConnectError(refusal, Code.PermissionDenied);
    case "undecided":
      return unavailable();
    case "limited":
      return new ConnectError("too many requests; try again later", Code.ResourceExhausted);
    case "invalid":
      return new ConnectError("encrypted_blob: is not the JSON form of SecretsConfig", Code.InvalidArgument);
    case "failed":
      return failureError(outcome);
  }
}

function failureError({ reason, error }: Failure): ConnectError {
  switch (reason) {
    case "the caller disconnected":
      return new ConnectError("the call was canceled", Code.Canceled);
    case "internal error":
      return new ConnectError("internal error", Code.Internal);
    case "decryption failed": {
      // The message names the variable, which is the caller's own, but not what is wrong with it.
      const isNamed = error instanceof VaultError && error.code === "undecryptable";
      return new ConnectError(isNamed ? error.message : "the variables cannot be decrypted", Code.Internal);
    }
    default:
      return unavailable();
  }
}

export function unavailable(): ConnectError {
  return new ConnectError("secrets are temporarily unavailable; try again", Code.Unavailable);
}

/** The value of the metric's `type` label. */
export function metricTypeOf(outcome: NotGiven) {
  switch (outcome.kind) {
    case "unauthenticated":
      return "unauthenticated";
    case "denied":
      return "permission_denied";
    case "undecided":
      return "unavailable";
    case "limited":
      return "rate_limited";
    case "invalid":
      return "invalid_blob";
    case "failed":
      if (outcome.reason === "decryption failed") return "decrypt_failed";
      return outcome.reason === "internal error" ? "internal" : "unavailable";
  }
}
