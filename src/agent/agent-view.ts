// What can be seen of the agent from outside: who it is, and its controllers as they are
// at the moment. AgentService, the health checks and the state that goes upstream all look
// at this one view, so they never tell different stories.
import { create } from "@bufbuild/protobuf";
import {
  type AgentStatus,
  AgentStatusSchema,
  BreakerStatus_State,
  type ControllerStatus,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import type { HealthCheck } from "../http/health.ts";
import type { AgentInspector, ControllerInspector } from "../services/agent-service.ts";

export interface AgentIdentity {
  readonly instanceId: string;
  readonly region: string;
  readonly version: string;
  readonly startedAtMs: number;
}

export interface ViewedController extends ControllerInspector {
  status(): ControllerStatus;
}

export class AgentView implements AgentInspector {
  private readonly identity: AgentIdentity;
  private viewed: ReadonlyMap<string, ViewedController> = new Map();

  constructor(identity: AgentIdentity) {
    this.identity = identity;
  }

  /** In the order of their names, whichever starts first. */
  get controllers(): ReadonlyMap<string, ViewedController> {
    return this.viewed;
  }

  /** To be called before the controller starts: one that cannot start is worth looking at. */
  add(name: string, controller: ViewedController): void {
    const all = [...this.viewed, [name, controller] as const];
    this.viewed = new Map(all.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  controllerStatuses(): ControllerStatus[] {
    return [...this.viewed.values()].map((controller) => controller.status());
  }

  status(): AgentStatus {
    const { startedAtMs, ...identity } = this.identity;
    return create(AgentStatusSchema, {
      ...identity,
      startedAtMs: BigInt(Math.round(startedAtMs)),
      controllers: this.controllerStatuses(),
    });
  }
}

// What /health/ready says about the two others that krane needs. Anyone who reaches the
// port can read it, so it names the part and the kind of trouble, and no address, name or
// text of a server: AgentService and the log have those, and ask for more than a port.

export function healthChecks(view: AgentView): ReadonlyMap<string, HealthCheck> {
  const check =
    (troublesOf: (status: ControllerStatus) => readonly string[]): HealthCheck =>
    async () => {
      const troubles = view
        .controllerStatuses()
        .flatMap((status) => troublesOf(status).map((trouble) => `${status.name}: ${trouble}`));
      if (troubles.length > 0) throw new Error(troubles.join("; "));
    };
  return new Map([
    ["control plane", check(controlPlaneTroubles)],
    ["kubernetes", check(kubernetesTroubles)],
  ]);
}

function controlPlaneTroubles({ stream, breaker }: ControllerStatus): readonly string[] {
  const troubles: string[] = [];
  const code = stream?.lastErrorCode || "ended";
  if (stream?.state === StreamStatus_State.BACKING_OFF) troubles.push(`stream is down (${code})`);
  // The first attempt is no trouble; one after a failure is still part of that failure.
  if (stream?.state === StreamStatus_State.CONNECTING && stream.lastErrorCode !== "")
    troubles.push(`stream is being opened again (${code})`);
  if (breaker?.state === BreakerStatus_State.OPEN) troubles.push("reports are failing");
  return troubles;
}

/** In few words: the answer is cut where it gets long, and three controllers watch eight kinds. */
function kubernetesTroubles({ caches }: ControllerStatus): readonly string[] {
  const closed = caches
    .filter(({ synced, lastError }) => !synced || lastError !== "")
    .map(({ kind }) => kind.slice(kind.lastIndexOf("/") + 1));
  return closed.length === 0 ? [] : [`cannot watch ${closed.join(", ")}`];
}
