// What became of one request for secrets, in words for whoever runs krane. The caller hears none of it:
// every refusal is the same sentence, because "no such pod" and "not your deployment" are two
// different answers to somebody who is guessing.

import { Code, ConnectError } from "@connectrpc/connect";
import { DeadlineError } from "../concurrency/abort.ts";
import { KubeApiError } from "../kube/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { VaultError } from "../vault/vault-error.ts";
import type { TokenRefusal, TokenSubject } from "./token-verdict.ts";
import type { UndecidedReason, UnwantedReason } from "./wanted-workload.ts";
import type { WorkloadRefusal } from "./workload-identity.ts";

/** Something else went wrong, and nobody was judged. */
export interface Failure {
  readonly kind: "failed";
  readonly reason:
    | "Kubernetes cannot be asked"
    | "the vault cannot be asked"
    | "not done in time"
    | "decryption failed"
    | "the caller went away"
    | "internal error";
  readonly error: unknown;
}

export type NotGiven =
  /** The token itself is no good. */
  | { readonly kind: "unauthenticated"; readonly reason: TokenRefusal }
  /** The token is good, and its pod may not have what it asks for. */
  | {
      readonly kind: "denied";
      readonly reason:
        | WorkloadRefusal
        | UnwantedReason
        | "asked for another deployment"
        | "asked for another environment";
    }
  /** The pod looks right, and desired state does not say so yet. */
  | { readonly kind: "undecided"; readonly reason: UndecidedReason }
  | {
      readonly kind: "limited";
      readonly reason: "too many calls of this address" | "too many calls of this pod" | "too many tokens";
      /** Told less than a minute ago: counted, and not told again. */
      readonly isRepeated: boolean;
    }
  | { readonly kind: "invalid"; readonly reason: "the blob is not the JSON form of SecretsConfig" }
  | Failure;

export type SecretsOutcome = NotGiven | { readonly kind: "allowed"; readonly count: number };

export interface SecretsDecision {
  readonly outcome: SecretsOutcome;
  /** Where the request came from; empty when it came over no network. */
  readonly peer: string;
  /** Whose token it was, as far as that was found out. */
  readonly subject?: TokenSubject | undefined;
  /** As the caller claimed them, cut to what an id can be. */
  readonly askedFor: { readonly deploymentId: string; readonly environmentId: string };
  readonly durationMs: number;
}

/** Writes one line per decision. It has no place for a token, a value or the name of a variable (K7). */
export function createDecisionLog(log: Log): (decision: SecretsDecision) => void {
  return ({ outcome, peer, subject, askedFor, durationMs }) => {
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
      log.info("secrets given to a workload", { ...line, count: outcome.count });
    } else if (outcome.kind === "failed") {
      log.error("secrets not given", { ...line, reason: outcome.reason, error: outcome.error });
    } else if (outcome.kind === "undecided") {
      log.warn("secrets not given", { ...line, reason: outcome.reason });
    } else {
      log.warn("secrets refused", { ...line, reason: outcome.reason });
    }
  };
}

// From what kept secrets from being given to what the caller hears of it, and how it is counted.

/** What a failure of others means. Not being able to find out is never a refusal. */
export function failureOf(error: unknown, signal: AbortSignal): Failure {
  const failed = (reason: Failure["reason"]): Failure => ({ kind: "failed", reason, error });
  if (signal.aborted) return failed("the caller went away");
  if (error instanceof DeadlineError) return failed("not done in time");
  if (error instanceof KubeApiError) return failed("Kubernetes cannot be asked");
  if (!(error instanceof VaultError)) return failed("internal error");
  const isOutage = error.code === "unavailable" || error.code === "unauthenticated";
  return failed(isOutage ? "the vault cannot be asked" : "decryption failed");
}

const refusal = "these secrets are not for this caller";

export function answerTo(outcome: NotGiven): ConnectError {
  switch (outcome.kind) {
    case "unauthenticated":
      return new ConnectError(refusal, Code.Unauthenticated);
    case "denied":
      return new ConnectError(refusal, Code.PermissionDenied);
    case "undecided":
      return unavailable();
    case "limited":
      return new ConnectError("too many requests; ask again later", Code.ResourceExhausted);
    case "invalid":
      return new ConnectError("encrypted_blob: is not the JSON form of SecretsConfig", Code.InvalidArgument);
    case "failed":
      return answerToFailure(outcome);
  }
}

function answerToFailure({ reason, error }: Failure): ConnectError {
  switch (reason) {
    case "the caller went away":
      return new ConnectError("the call was canceled", Code.Canceled);
    case "internal error":
      return new ConnectError("internal error", Code.Internal);
    case "decryption failed": {
      // Names the variable, which is the caller's own, and does not say what was wrong with it.
      const isNamed = error instanceof VaultError && error.code === "undecryptable";
      return new ConnectError(isNamed ? error.message : "the variables cannot be decrypted", Code.Internal);
    }
    default:
      return unavailable();
  }
}

export function unavailable(): ConnectError {
  return new ConnectError("secrets cannot be had at the moment; ask again", Code.Unavailable);
}

/** The value of the metric's label. */
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
