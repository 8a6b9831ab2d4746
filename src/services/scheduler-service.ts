// krane.v1.SchedulerService: desired state by call instead of by stream. It gives orders to the controllers,
// which take the same road into the cluster as what the stream brings, and tells what they see.
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { SecretSource } from "../config/secret-source.ts";
import type { OrderOutcome, SeenObjects } from "../engine/running-controller.ts";
import { SchedulerService, type State } from "../gen/krane/v1/scheduler_pb.ts";
import type { ControllerOf } from "../kinds/kinds.ts";
import { quote } from "../model/field-problem.ts";
import { sentinelNamespace } from "../model/labels.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createRotatingBearerAuth } from "./bearer-auth.ts";
import { type FetchDocument, scrapeDocument } from "./document-fetch.ts";
import { createErrorInterceptor } from "./rpc-errors.ts";
import { createRpcMetrics } from "./rpc-metrics.ts";
import {
  deploymentDeletion,
  deploymentOrder,
  deploymentState,
  sentinelDeletion,
  sentinelOrder,
  sentinelState,
} from "./scheduler-messages.ts";
import { type StateSource, watchStates } from "./scheduler-watch.ts";
import { StreamPlaces } from "./stream-places.ts";

/** The controllers, as far as orders go to them. */
export interface SchedulerTarget {
  readonly deployments: Pick<ControllerOf<"deployment">, "apply" | "delete" | "seen">;
  readonly sentinels: Pick<ControllerOf<"sentinel">, "apply" | "delete" | "seen">;
}

export interface SchedulerServiceDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "rpcServerRequests" | "rpcServerDuration">;
  /** Undefined before the start and on the way out. */
  target(): SchedulerTarget | undefined;
  /** Absent where it is switched off. */
  readonly fetchDocument?: FetchDocument | undefined;
}

/** The variables of a deployment in JSON, twice encoded, and some more. */
const requestBytesMax = 512 * 1024;

/** What each client was told last is kept for as long as it watches. */
const watchesMax = 32;

/** Puts the service into a router, behind its bearer token. */
export function schedulerServiceRoutes(
  token: SecretSource,
  deps: SchedulerServiceDeps,
): (router: ConnectRouter) => void {
  const options = {
    interceptors: [createRpcMetrics(deps), createErrorInterceptor(deps), createRotatingBearerAuth(token)],
    readMaxBytes: requestBytesMax,
  };
  return (router) => void router.service(SchedulerService, createSchedulerService(deps), options);
}

export function createSchedulerService(deps: SchedulerServiceDeps): ServiceImpl<typeof SchedulerService> {
  const { clock } = deps;
  const watches = new StreamPlaces({ streamsMax: watchesMax }, deps);
  const target = (): SchedulerTarget => {
    const found = deps.target();
    if (found === undefined)
      throw new ConnectError("krane has not started, or is stopping", Code.Unavailable);
    return found;
  };
  return {
    async applyDeployment(request, { signal }) {
      const { deployments } = target();
      const give = (waiting: AbortSignal) =>
        deployments.apply(deploymentOrder(request), waiting, request.readinessId);
      await carriedOut("apply", give, { clock, ending: deployments.seen.ending }, signal);
      return {};
    },
    async deleteDeployment(request, { signal }) {
      const { deployments } = target();
      const give = (waiting: AbortSignal) => deployments.delete(deploymentDeletion(request), waiting);
      await carriedOut("delete", give, { clock, ending: deployments.seen.ending }, signal);
      return {};
    },
    async applySentinel(request, { signal }) {
      assertSentinelNamespace(request);
      const { sentinels } = target();
      const give = (waiting: AbortSignal) => sentinels.apply(sentinelOrder(request), waiting);
      await carriedOut("apply", give, { clock, ending: sentinels.seen.ending }, signal);
      return {};
    },
    async deleteSentinel(request, { signal }) {
      assertSentinelNamespace(request);
      const { sentinels } = target();
      const give = (waiting: AbortSignal) => sentinels.delete(sentinelDeletion(request), waiting);
      await carriedOut("delete", give, { clock, ending: sentinels.seen.ending }, signal);
      return {};
    },
    watch(_, context) {
      const { deployments, sentinels } = target();
      const seen = [
        stateSource(deployments.seen, deploymentState),
        stateSource(sentinels.seen, sentinelState),
      ];
      return watches.hold(watchStates(seen, context.signal), context);
    },
    async scrapeOpenApiSchema({ namespace, name, path }, { signal }) {
      const { fetchDocument } = deps;
      if (fetchDocument === undefined) {
        throw new ConnectError(
          "krane does not reach into instances; set scheduler.scrape = true to allow it",
          Code.FailedPrecondition,
        );
      }
      const seen = target().deployments.seen.get(`${namespace}/${name}`);
      return { spec: await scrapeDocument(seen, path, fetchDocument, signal) };
    },
  };
}

function stateSource<T>(seen: SeenObjects<T>, stateOf: (one: T) => State): StateSource {
  return {
    keys: () => seen.keys(),
    get(key) {
      const one = seen.get(key);
      return one && stateOf(one);
    },
    subscribe: (listener) => seen.subscribe(listener),
    ending: seen.ending,
  };
}

function assertSentinelNamespace({ k8sNamespace }: { readonly k8sNamespace: string }): void {
  if (k8sNamespace === sentinelNamespace) return;
  const message = `k8s_namespace must be ${quote(sentinelNamespace)}, but is ${quote(k8sNamespace)}`;
  throw new ConnectError(message, Code.InvalidArgument);
}

// What a caller of SchedulerService hears of an order.
//
// - ok: it is carried out. invalid_argument: it was not taken, and changed nothing.
// - Every other answer speaks of an order that was taken and stays: failed_precondition and already_exists
//   need somebody to do something first, unavailable and deadline_exceeded only need time.

/** For callers that set no deadline, or one that is hours away. */
const orderWaitMs = 60_000;

type OrderVerb = "apply" | "delete";

/** Resolves once the order is carried out; rejects with what the caller is to hear. */
export async function carriedOut(
  verb: OrderVerb,
  give: (signal: AbortSignal) => Promise<OrderOutcome>,
  deps: { readonly clock: Clock; readonly ending: AbortSignal },
  signal: AbortSignal,
): Promise<void> {
  let outcome: OrderOutcome;
  try {
    outcome = await withTimeout(deps.clock, orderWaitMs, signal, give);
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof DeadlineError)
      throw new ConnectError("not carried out yet; the order stays", Code.DeadlineExceeded);
    if (deps.ending.aborted) throw new ConnectError("krane is stopping", Code.Unavailable);
    throw error;
  }
  const refusal = refusalOf(verb, outcome);
  if (refusal !== undefined) throw refusal;
}

export function refusalOf(verb: OrderVerb, order: OrderOutcome): ConnectError | undefined {
  const { outcome, reason } = order;
  if (order.isInvalid) return new ConnectError(reason, Code.InvalidArgument);
  switch (outcome) {
    case "applied":
    case "unchanged":
    case "deleted":
      return undefined;
    case "parked":
      return new ConnectError(`refused by Kubernetes, the order stays: ${reason}`, Code.FailedPrecondition);
    case "conflict":
      return new ConnectError(reason, verb === "apply" ? Code.AlreadyExists : Code.FailedPrecondition);
    case "blocked":
      return new ConnectError(reason, Code.FailedPrecondition);
    case "pending":
    case "retrying":
      return new ConnectError(`not carried out yet, the order stays: ${reason}`, Code.Unavailable);
  }
}
