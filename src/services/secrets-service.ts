// krane.v1.SecretsService: gives a pod its own secrets, and nobody else's.
//
// - The token says which pod calls, the cluster says what that pod is, and desired state says whether that is
//   wanted. Desired state alone chooses the keyring, for it is the one of the three that no tenant can write.
//   The ids in the request are compared, and never used.
// - Whoever is refused hears one sentence, whatever the reason was.
// - Not being able to ask, or not knowing yet, is `unavailable`: never a refusal, which a pod would take for final, and
//   never a yes.
// - All variables or none.
// - An address that comes too often is turned away before its message is read.
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import { type DecryptSecretsBlobRequest, SecretsService } from "../gen/krane/v1/secrets_pb.ts";
import { RateLimit } from "../http/rate-limit.ts";
import type { DesiredDeployments } from "../kinds/deployment/desired-deployments.ts";
import { readSecretsBlob } from "../kinds/deployment/secrets-blob.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Vault } from "../vault/vault.ts";
import { VaultError } from "../vault/vault-error.ts";
import { createAdmission, peerAddress } from "./call-admission.ts";
import { createErrorInterceptor } from "./rpc-errors.ts";
import { createRpcMetrics } from "./rpc-metrics.ts";
import {
  answerTo,
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
  /** With connections of its own, so that a crowd of pods takes none from a controller (K6). */
  readonly api: KubeApi;
  readonly vault: Pick<Vault, "decryptBulk">;
  /** Asked at every call, after the cluster. */
  readonly desired: DesiredDeployments;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<
    Metrics,
    "rpcServerRequests" | "rpcServerDuration" | "secretsRequests" | "secretsErrors" | "secretsDuration"
  >;
  /** Told of every decision, once it is made. */
  audit(decision: SecretsDecision): void;
}

/** How many requests the API server gets at the same time; half of them may be reviews of tokens. */
export const secretsConnections = 16;

// Room for a token that is far too large: it is to be refused like every other bad token, and seen in
// the audit, and not as a message that nobody has read.
const requestBytesMax = 1536 * 1024;
const timeoutMs = 10_000;
// Many pods can be behind the address of one node, and all of them start when it does.
const perAddress = { burst: 500, perSecond: 50, keysMax: 10_000 };
// A pod asks once per start of a container, so this is already a pod in trouble.
const perPod = { burst: 30, perSecond: 1, keysMax: 10_000 };
// A flood is refused thousands of times a second; a line per minute, and per caller, says as much.
const perRefusalTold = { burst: 1, perSecond: 1 / 60, keysMax: 1_000 };
const idCharsMax = 64;

export interface RunningSecretsService extends ServiceImpl<typeof SecretsService> {
  /** Throws `resource_exhausted` to an address that comes too often. */
  admit(peer: string): void;
}

/**
 * Puts the service into a router. It asks for no bearer token: the token is in the message. What is not
 * there yet, or no longer, is unavailable.
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
  const desk = new SecretsDesk(options, deps);
  return {
    admit: (peer) => desk.admit(peer),
    decryptSecretsBlob: async (request, { signal, values }) => ({
      envVars: Object.fromEntries(await desk.serve(request, values.get(peerAddress), signal)),
    }),
  };
}

/** What was found out about one request so far. */
interface Inquiry {
  /** Absent where it was not read. */
  readonly request?: DecryptSecretsBlobRequest;
  readonly peer: string;
  subject?: TokenSubject;
}

type Decided = NotGiven | { readonly kind: "given"; readonly variables: ReadonlyMap<string, string> };

class SecretsDesk {
  private readonly deps: SecretsServiceDeps;
  private readonly reviews: TokenReviews;
  private readonly callsOfAddress: RateLimit;
  private readonly callsOfPod: RateLimit;
  private readonly tellings: RateLimit;

  constructor(options: SecretsServiceOptions, deps: SecretsServiceDeps) {
    this.deps = deps;
    this.reviews = new TokenReviews(options, deps);
    this.callsOfAddress = new RateLimit(perAddress, deps);
    this.callsOfPod = new RateLimit(perPod, deps);
    this.tellings = new RateLimit(perRefusalTold, deps);
  }

  admit(peer: string): void {
    if (this.callsOfAddress.take(peer)) return;
    const refusal = this.limited("too many calls of this address", peer);
    this.record({ peer }, refusal, 0);
    throw answerTo(refusal);
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
    if (decided.kind !== "given") throw answerTo(decided);
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
    if (!this.callsOfPod.take(podUid)) return this.limited("too many calls of this pod", podUid);
    const workload = await identifyWorkload(verdict.subject, this.deps.api, signal);
    if (workload.kind === "refused") return { ...workload, kind: "denied" };
    const { deploymentId, environmentId } = workload.identity;
    if (request.deploymentId !== deploymentId)
      return { kind: "denied", reason: "asked for another deployment" };
    if (request.environmentId !== environmentId)
      return { kind: "denied", reason: "asked for another environment" };
    const wanted = judgeWanted(workload.identity, this.deps.desired);
    if (wanted.kind !== "wanted") return wanted;
    return this.decrypt(request.encryptedBlob, wanted.environmentId, signal);
  }

  private async decrypt(blob: Uint8Array, keyring: string, signal: AbortSignal): Promise<Decided> {
    const items = readSecretsBlob(blob);
    if (items === undefined)
      return { kind: "invalid", reason: "the blob is not the JSON form of SecretsConfig" };
    if (items.size === 0) return { kind: "given", variables: items };
    const variables = await this.deps.vault.decryptBulk({ keyring, items }, signal);
    // A program that starts with half of its variables does harm that one which does not start cannot.
    const isWhole = variables.size === items.size && [...items.keys()].every((name) => variables.has(name));
    if (!isWhole) throw new VaultError("internal", "the vault left variables out of its answer");
    return { kind: "given", variables };
  }

  private record({ request, peer, subject }: Inquiry, outcome: SecretsOutcome, durationMs: number): void {
    const { metrics, audit } = this.deps;
    metrics.secretsRequests.inc({ result: outcome.kind === "allowed" ? "success" : "error" });
    if (outcome.kind !== "allowed") metrics.secretsErrors.inc({ type: metricTypeOf(outcome) });
    metrics.secretsDuration.observe({}, durationMs / 1_000);
    const askedFor = {
      deploymentId: request?.deploymentId.slice(0, idCharsMax) ?? "",
      environmentId: request?.environmentId.slice(0, idCharsMax) ?? "",
    };
    audit({ outcome, peer, subject, askedFor, durationMs });
  }
  private limited(reason: Extract<NotGiven, { kind: "limited" }>["reason"], caller: string): NotGiven {
    return { kind: "limited", reason, isRepeated: !this.tellings.take(`${reason} ${caller}`) };
  }
}
