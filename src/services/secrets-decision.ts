// What became of one request for secrets, in words for whoever runs krane. The caller hears none of it:
// every refusal is the same sentence, because "no such pod" and "not your deployment" are two
// different answers to somebody who is guessing.
import type { Log } from "../telemetry/log.ts";
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
