// Implements krane.v1.AgentService: shows the agent's state, and allows deletions that the agent holds back and the
// adoption of objects of another krane. It reads the agent through an interface and has no state of its own.
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import type { SecretSource } from "../config/secret-source.ts";
import type { AdoptedObject, AdoptionOutcome } from "../engine/running-controller.ts";
import {
  AgentService,
  type AgentStatus,
  type BlockedDeletion,
  type ObjectStatus,
  type Stranger,
} from "../gen/krane/v1/agent_pb.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createRotatingBearerAuth } from "./bearer-auth.ts";
import { type LeaderCallDeps, onLeader } from "./leader-calls.ts";
import { comparePositions, pageOf, parsePage } from "./page-token.ts";
import { createErrorInterceptor } from "./rpc-errors.ts";
import { createRpcMetrics } from "./rpc-metrics.ts";

/** One controller, as AgentService shows it. */
export interface ControllerInspector {
  /** Sorted by key: those after `after`, at most `limit`. */
  objects(filter: {
    readonly onlyTroubled: boolean;
    readonly refusedFirst?: boolean;
    readonly after?: string | undefined;
    readonly limit?: number;
  }): readonly ObjectStatus[];
  blockedDeletions(): readonly BlockedDeletion[];
  /** False when no such deletion is held back. */
  releaseDeletion(key: string): boolean;
  readonly seals: {
    /** The objects with the seal of another krane. */
    strangers(): readonly Stranger[];
    /** Allows to take them over. The outcomes are in the order of the objects. */
    adopt(objects: readonly AdoptedObject[]): readonly AdoptionOutcome[];
  };
}

export interface AgentInspector extends Pick<LeaderCallDeps, "standby"> {
  status(): AgentStatus;
  /** By name. A controller is added when it begins to start. */
  readonly controllers: ReadonlyMap<string, ControllerInspector>;
}

export interface AgentServiceDeps extends Pick<LeaderCallDeps, "forward"> {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "rpcServerRequests" | "rpcServerDuration">;
}

/** Requests only hold a few names. */
const requestBytesMax = 64 * 1024;

/** Registers the service with a router, behind its bearer token. */
export function agentServiceRoutes(
  inspector: AgentInspector,
  token: SecretSource,
  deps: AgentServiceDeps,
): (router: ConnectRouter) => void {
  const options = {
    interceptors: [createRpcMetrics(deps), createErrorInterceptor(deps), createRotatingBearerAuth(token)],
    readMaxBytes: requestBytesMax,
  };
  return (router) => void router.service(AgentService, createAgentService(inspector, deps), options);
}

function createAgentService(
  inspector: AgentInspector,
  { log, forward }: Pick<AgentServiceDeps, "log" | "forward">,
): ServiceImpl<typeof AgentService> {
  const { method } = AgentService;
  const leaderDeps = { standby: () => inspector.standby?.(), forward };
  return {
    getStatus: () => ({ status: inspector.status() }),
    listObjects({ controller, onlyTroubled, ...page }) {
      const { after, size } = parsePage(page);
      const objects = chosen(inspector, controller).flatMap(([name, each]) =>
        // One more than the page size shows whether there is another page.
        each.objects({
          onlyTroubled,
          limit: size + 1,
          after: name === after?.controller ? after.key : undefined,
        }),
      );
      const { items, nextPageToken } = pageOf(objects.sort(comparePositions), page);
      return { objects: [...items], nextPageToken };
    },
    listBlockedDeletions({ controller, ...page }) {
      const deletions = chosen(inspector, controller).flatMap(([, each]) => each.blockedDeletions());
      const { items, nextPageToken } = pageOf(deletions.sort(comparePositions), page);
      return { blockedDeletions: [...items], nextPageToken };
    },
    releaseDeletion: onLeader(
      method.releaseDeletion,
      ({ controller, key }) => {
        if (controller === "") throw invalid("controller", "is missing");
        if (key === "") throw invalid("key", "is missing");
        const isReleased = named(inspector, controller).releaseDeletion(key);
        if (!isReleased) throw new ConnectError("no deletion of this key is held back", Code.NotFound);
        // Always logged, because it is the only delete that the control plane did not order.
        log.warn("a held-back deletion was allowed through AgentService", { controller, key });
        return {};
      },
      leaderDeps,
    ),
    listStrangers({ controller, ...page }) {
      const strangers = chosen(inspector, controller).flatMap(([, each]) => each.seals.strangers());
      const placed = strangers.map((stranger) => {
        const { kind, namespace, name } = stranger;
        return { controller: stranger.controller, key: `${kind} ${namespace}/${name}`, stranger };
      });
      const { items, nextPageToken } = pageOf(placed.sort(comparePositions), page);
      return { strangers: items.map(({ stranger }) => stranger), nextPageToken };
    },
    adoptObject: onLeader(
      method.adoptObject,
      ({ controller, kind, namespace, name, uid }) => {
        const fields = { controller, kind, namespace, name, uid };
        for (const [field, value] of Object.entries(fields))
          if (value === "") throw invalid(field, "is missing");
        const [outcome] = named(inspector, controller).seals.adopt([{ kind, namespace, name, uid }]);
        if (outcome?.kind === "refused") throw new ConnectError(outcome.reason, Code.FailedPrecondition);
        if (outcome === undefined || outcome.kind === "not-found")
          throw new ConnectError("no object of another krane has this name", Code.NotFound);
        // Always logged, because the object may belong to a krane that is still running.
        log.warn("the adoption of an object was allowed through AgentService", fields);
        return {};
      },
      leaderDeps,
    ),
  };
}

function chosen(
  inspector: AgentInspector,
  name: string,
): readonly (readonly [string, ControllerInspector])[] {
  return name === "" ? [...inspector.controllers] : [[name, named(inspector, name)]];
}

function named({ controllers }: AgentInspector, name: string): ControllerInspector {
  const controller = controllers.get(name);
  if (controller !== undefined) return controller;
  throw invalid("controller", `must be one of: ${[...controllers.keys()].join(", ")}`);
}

function invalid(field: string, reason: string): ConnectError {
  return new ConnectError(`${field}: ${reason}`, Code.InvalidArgument);
}
