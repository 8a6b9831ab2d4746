// Implements krane.v1.SchedulerService: desired state by RPC instead of by stream. Orders go to the controllers, which
// apply them like the stream's messages, and Watch returns what the controllers observe.
//
// The status of an order:
// - ok: done. invalid_argument: rejected, and nothing changed.
// - unavailable with "order not accepted" or "not done": it could not be recorded, or no leader was reached; nothing changed.
// - unavailable with "may have accepted it" or "krane is stopping": it is unknown whether it was recorded, or whether the leader
//   got the call.
// - Any other code means that the order was accepted and stays in force. failed_precondition and already_exists need
//   someone to fix something first; unavailable and deadline_exceeded only need time. Only a caller whose own deadline is
//   shorter than it takes to record an order does not learn whether it was accepted.
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
import { type LeaderCallDeps, onLeader } from "./leader-calls.ts";
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

/** The controllers that take orders. */
export interface SchedulerTarget {
  readonly deployments: Pick<ControllerOf<"deployment">, "apply" | "delete" | "seen">;
  readonly sentinels: Pick<ControllerOf<"sentinel">, "apply" | "delete" | "seen">;
}

interface Controllers {
  get(kind: "deployment"): SchedulerTarget["deployments"] | undefined;
  get(kind: "sentinel"): SchedulerTarget["sentinels"] | undefined;
}

/** Undefined until both have been created. */
export function findSchedulerTarget(controllers: Controllers): SchedulerTarget | undefined {
  const [deployments, sentinels] = [controllers.get("deployment"), controllers.get("sentinel")];
  return deployments && sentinels && { deployments, sentinels };
}

export interface SchedulerServiceDeps extends LeaderCallDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "rpcServerRequests" | "rpcServerDuration">;
  /** Undefined before the start and during shutdown. */
  target(): SchedulerTarget | undefined;
  /** Absent when scraping is off. */
  readonly fetchDocument?: FetchDocument | undefined;
}

/** Enough for the variables of a deployment in JSON, encoded twice. */
const requestBytesMax = 512 * 1024;

/** Limited, because each watch keeps the last state that it sent of every object. */
const watchesMax = 32;

/** For callers that set no deadline, or a very long one. */
const orderWaitMs = 60_000;

/** Registers the service with a router, behind its bearer token. */
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

function createSchedulerService(deps: SchedulerServiceDeps): ServiceImpl<typeof SchedulerService> {
  const { clock } = deps;
  const watches = new StreamPlaces({ streamsMax: watchesMax }, deps);
  const target = (): SchedulerTarget => {
    const found = deps.target();
    if (found === undefined)
      throw new ConnectError("krane has not started, or is stopping", Code.Unavailable);
    return found;
  };
  const { method } = SchedulerService;
  return {
    applyDeployment: onLeader(
      method.applyDeployment,
      async (request, { signal }) => {
        const { deployments } = target();
        const give = (waiting: AbortSignal) =>
          deployments.apply(deploymentOrder(request), waiting, request.readinessId);
        await completeOrder("apply", give, { clock, ending: deployments.seen.ending }, signal);
        return {};
      },
      deps,
    ),
    deleteDeployment: onLeader(
      method.deleteDeployment,
      async (request, { signal }) => {
        const { deployments } = target();
        const give = (waiting: AbortSignal) => deployments.delete(deploymentDeletion(request), waiting);
        await completeOrder("delete", give, { clock, ending: deployments.seen.ending }, signal);
        return {};
      },
      deps,
    ),
    applySentinel: onLeader(
      method.applySentinel,
      async (request, { signal }) => {
        assertSentinelNamespace(request);
        const { sentinels } = target();
        const give = (waiting: AbortSignal) => sentinels.apply(sentinelOrder(request), waiting);
        await completeOrder("apply", give, { clock, ending: sentinels.seen.ending }, signal);
        return {};
      },
      deps,
    ),
    deleteSentinel: onLeader(
      method.deleteSentinel,
      async (request, { signal }) => {
        assertSentinelNamespace(request);
        const { sentinels } = target();
        const give = (waiting: AbortSignal) => sentinels.delete(sentinelDeletion(request), waiting);
        await completeOrder("delete", give, { clock, ending: sentinels.seen.ending }, signal);
        return {};
      },
      deps,
    ),
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
          "scraping instances is off; set scheduler.scrape = true to allow it",
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

type OrderVerb = "apply" | "delete";

/** Resolves when the order is done. Rejects with the error that the caller gets. */
export async function completeOrder(
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
      throw new ConnectError("not done yet; the order stays in force", Code.DeadlineExceeded);
    if (deps.ending.aborted) throw new ConnectError("krane is stopping", Code.Unavailable);
    throw error;
  }
  const refusal = refusalOf(verb, outcome);
  if (refusal !== undefined) throw refusal;
}

export function refusalOf(verb: OrderVerb, order: OrderOutcome): ConnectError | undefined {
  const { outcome, reason } = order;
  if (order.isInvalid) return new ConnectError(reason, Code.InvalidArgument);
  if (order.isUnrecorded) {
    const what = order.mayBeRecorded ? "krane may have accepted it" : "order not accepted";
    return new ConnectError(`${what}: ${reason}`, Code.Unavailable);
  }
  switch (outcome) {
    case "applied":
    case "unchanged":
    case "deleted":
      return undefined;
    case "parked":
      return new ConnectError(
        `rejected by Kubernetes; the order stays in force: ${reason}`,
        Code.FailedPrecondition,
      );
    case "conflict":
      return new ConnectError(reason, verb === "apply" ? Code.AlreadyExists : Code.FailedPrecondition);
    case "blocked":
      return new ConnectError(reason, Code.FailedPrecondition);
    case "pending":
    case "retrying":
      return new ConnectError(`not done yet; the order stays in force: ${reason}`, Code.Unavailable);
  }
}
