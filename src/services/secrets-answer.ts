// From what kept secrets from being given to what the caller hears of it, and how it is counted.
import { Code, ConnectError } from "@connectrpc/connect";
import { DeadlineError } from "../concurrency/abort.ts";
import { KubeApiError } from "../kube/errors.ts";
import { VaultError } from "../vault/vault-error.ts";
import type { Failure, NotGiven } from "./secrets-decision.ts";

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
