// Implements krane.v1.SecretsService: gives a pod its own secrets, and no others.
//
// - The token identifies the calling pod, the cluster identifies the pod's deployment, and desired state confirms that
//   the deployment is wanted. Only desired state or a seal selects the keyring, because tenants can write neither. The
//   ids in the request are compared, but never used.
// - Every refusal has the same message, whatever the reason.
// - A failed lookup, or a deployment that is not known yet, is `unavailable`. It is never a refusal, which a pod would
//   treat as final, and never a success.
// - A response has all variables or none.
// - An address that calls too often is rejected before its message is read.
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import { type DecryptSecretsBlobRequest, SecretsService } from "../gen/krane/v1/secrets_pb.ts";
import { RateLimit } from "../http/rate-limit.ts";
import type { DesiredDeployments } from "../kinds/deployment/desired-deployments.ts";
import { readSecretsBlob } from "../kinds/deployment/secrets-blob.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Seal } from "../model/seal.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Vault } from "../vault/vault.ts";
import { VaultError } from "../vault/vault-error.ts";
import { createAdmission, peerAddress } from "./call-admission.ts";
import { KnownReplicaSets, type WatchedReplicaSets } from "./known-replica-sets.ts";
import { createErrorInterceptor } from "./rpc-errors.ts";
import { createRpcMetrics } from "./rpc-metrics.ts";
import {
  callerError,
  failureOf,
  metricTypeOf,
  type NotGiven,
  type SecretsDecision,
  type SecretsOutcome,
  unavailable,
} from "./secrets-decision.ts";
import { TokenReviews } from "./token-reviews.ts";
import { findTokenFlaw, type TokenSubject } from "./token-verdict.ts";
import { judgeWanted } from "./wanted-workload.ts";
import { identifyWorkload } from "./workload-identity.ts";

export interface SecretsServiceOptions {
  readonly audience: string;
  readonly acceptDefaultAudience: boolean;
}

export interface SecretsServiceDeps {
  /** With its own connections, so that many pods cannot take those of a controller (K6). */
  readonly api: KubeApi;
  readonly vault: Pick<Vault, "decryptBulk">;
  /** Read on every call, after the cluster. */
  readonly desired: DesiredDeployments;
  readonly replicaSets: WatchedReplicaSets;
  /** Undefined until it is loaded. */
  readonly seal: () => Seal | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<
    Metrics,
    | "rpcServerRequests"
    | "rpcServerDuration"
    | "secretsRequests"
    | "secretsErrors"
    | "secretsOriginal"
    | "secretsDuration"
  >;
  /** Whether pods of the original may be left; see original-pods.ts. */
  mayBeOriginal(): boolean;
  /** Called with every decision. */
  audit(decision: SecretsDecision): void;
}

/** Concurrent requests to the API server. Half of them may be token reviews. */
export const secretsConnections = 16;

// Large enough for a token that is far too large, so that it is refused and audited like every other bad token instead
// of failing as an oversized message.
const requestBytesMax = 1536 * 1024;
const timeoutMs = 10_000;
// Many pods can share the address of one node, and all of them start when it does.
const perAddress = { burst: 500, perSecond: 50, keysMax: 10_000 };
// A pod calls once per container start, so a pod that reaches this limit is already in trouble.
const perPod = { burst: 30, perSecond: 1, keysMax: 10_000 };
// Logged at most once a minute per caller.
const perLoggedRefusal = { burst: 1, perSecond: 1 / 60, keysMax: 1_000 };
const idCharsMax = 64;

export interface RunningSecretsService extends ServiceImpl<typeof SecretsService> {
  /** Throws `resource_exhausted` when the address calls too often. */
  admit(peer: string): void;
}

/**
 * Registers the service with a router. It needs no bearer token, because the token is in the message. Calls fail with
 * `unavailable` while the service is not running.
 */
export function secretsServiceRoutes(
  current: () => RunningSecretsService | undefined,
  deps: Pick<SecretsServiceDeps, "clock" | "log" | "metrics">,
): (router: ConnectRouter) => void {
  const running = () => {
    const service = current();
    if (service === undefined) throw unavailable();
    return service;
  };
  const service: ServiceImpl<typeof SecretsService> = {
    decryptSecretsBlob: (request, context) => running().decryptSecretsBlob(request, context),
  };
  const perAddressAdmission = createAdmission(({ peer }) => running().admit(peer));
  const interceptors = [createRpcMetrics(deps), createErrorInterceptor(deps), perAddressAdmission];
  return (router) =>
    void router.service(SecretsService, service, { interceptors, readMaxBytes: requestBytesMax });
}

export function createSecretsService(
  options: SecretsServiceOptions,
  deps: SecretsServiceDeps,
): RunningSecretsService {
  const handler = new SecretsHandler(options, deps);
  return {
    admit: (peer) => handler.admit(peer),
    decryptSecretsBlob: async (request, { signal, values }) => ({
      envVars: Object.fromEntries(await handler.serve(request, values.get(peerAddress), signal)),
    }),
  };
}

/** What is known about one request so far, for the audit. */
interface Inquiry {
  /** Absent when the call was rejected before its message was read. */
  readonly request?: DecryptSecretsBlobRequest;
  readonly peer: string;
  subject?: TokenSubject;
  /** It was decided by the rule for pods of the original. */
  isOriginal?: boolean;
}

type Decided = NotGiven | { readonly kind: "given"; readonly variables: ReadonlyMap<string, string> };

class SecretsHandler {
  private readonly deps: SecretsServiceDeps;
  private readonly reviews: TokenReviews;
  private readonly known: KnownReplicaSets;
  private readonly callsOfAddress: RateLimit;
  private readonly callsOfPod: RateLimit;
  private readonly logLines: RateLimit;

  constructor(options: SecretsServiceOptions, deps: SecretsServiceDeps) {
    this.deps = deps;
    this.reviews = new TokenReviews(options, deps);
    this.callsOfAddress = new RateLimit(perAddress, deps);
    this.known = new KnownReplicaSets(deps.replicaSets);
    this.callsOfPod = new RateLimit(perPod, deps);
    this.logLines = new RateLimit(perLoggedRefusal, deps);
  }

  admit(peer: string): void {
    if (this.callsOfAddress.take(peer)) return;
    const refusal = this.limited("too many calls from this address", peer);
    this.record({ peer }, refusal, 0);
    throw callerError(refusal);
  }

  async serve(
    request: DecryptSecretsBlobRequest,
    peer: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const { clock } = this.deps;
    const startedMs = clock.nowMs();
    const inquiry: Inquiry = { request, peer };
    let decided: Decided;
    try {
      decided = await withTimeout(clock, timeoutMs, signal, (inner) => this.decide(request, inquiry, inner));
    } catch (error) {
      decided = failureOf(error, signal);
    }
    const outcome =
      decided.kind === "given" ? ({ kind: "allowed", count: decided.variables.size } as const) : decided;
    this.record(inquiry, outcome, clock.nowMs() - startedMs);
    if (decided.kind !== "given") throw callerError(decided);
    return decided.variables;
  }

  private async decide(
    request: DecryptSecretsBlobRequest,
    inquiry: Inquiry,
    signal: AbortSignal,
  ): Promise<Decided> {
    const flaw = findTokenFlaw(request.token);
    if (flaw !== undefined) return { kind: "unauthenticated", reason: flaw };
    const verdict = await this.reviews.review(request.token, signal);
    if (verdict === undefined) return this.limited("too many tokens", "");
    if (verdict.kind === "refused") return { ...verdict, kind: "unauthenticated" };
    inquiry.subject = verdict.subject;
    const { podUid } = verdict.subject;
    if (!this.callsOfPod.take(podUid)) return this.limited("too many calls from this pod", podUid);
    const { api, seal: currentSeal } = this.deps;
    const seal = currentSeal();
    if (seal === undefined) return { kind: "undecided", reason: "krane has not loaded its seal yet" };
    const workload = await identifyWorkload(verdict.subject, { api, seal, known: this.known }, signal);
    const { isForApiServer = false } = verdict;
    if (isForApiServer && (workload.kind === "refused" || workload.identity.original === "no"))
      return { kind: "unauthenticated", reason: "token is for another audience" };
    if (workload.kind === "refused") return { ...workload, kind: "denied" };
    inquiry.isOriginal = isForApiServer;
    const { deploymentId, environmentId, original } = workload.identity;
    if (request.deploymentId !== deploymentId)
      return { kind: "denied", reason: "asked for another deployment" };
    if (request.environmentId !== environmentId)
      return { kind: "denied", reason: "asked for another environment" };
    const wanted = judgeWanted(workload.identity, this.deps.desired);
    if (wanted.kind !== "wanted") return wanted;
    if (isForApiServer && original !== "yes")
      return { kind: "undecided", reason: "krane has not taken over this ReplicaSet of the original yet" };
    return this.decrypt(request.encryptedBlob, wanted.environmentId, signal);
  }

  private async decrypt(blob: Uint8Array, keyring: string, signal: AbortSignal): Promise<Decided> {
    const items = readSecretsBlob(blob);
    if (items === undefined)
      return { kind: "invalid", reason: "the blob is not the JSON form of SecretsConfig" };
    if (items.size === 0) return { kind: "given", variables: items };
    const variables = await this.deps.vault.decryptBulk({ keyring, items }, signal);
    // A program with only half of its variables can do harm; one that does not start cannot.
    const isWhole = variables.size === items.size && [...items.keys()].every((name) => variables.has(name));
    if (!isWhole) throw new VaultError("internal", "variables are missing from the vault's response");
    return { kind: "given", variables };
  }

  private record(
    { request, peer, subject, isOriginal = false }: Inquiry,
    outcome: SecretsOutcome,
    durationMs: number,
  ): void {
    const { metrics, audit } = this.deps;
    metrics.secretsRequests.inc({ result: outcome.kind === "allowed" ? "success" : "error" });
    if (outcome.kind !== "allowed") metrics.secretsErrors.inc({ type: metricTypeOf(outcome) });
    metrics.secretsDuration.observe({}, durationMs / 1_000);
    if (isOriginal) metrics.secretsOriginal.inc({ result: outcome.kind === "allowed" ? "success" : "error" });
    const askedFor = {
      deploymentId: request?.deploymentId.slice(0, idCharsMax) ?? "",
      environmentId: request?.environmentId.slice(0, idCharsMax) ?? "",
    };
    audit({ outcome, peer, subject, askedFor, isOriginal, durationMs });
  }

  private limited(reason: Extract<NotGiven, { kind: "limited" }>["reason"], caller: string): NotGiven {
    return { kind: "limited", reason, isRepeated: !this.logLines.take(`${reason} ${caller}`) };
  }
}
