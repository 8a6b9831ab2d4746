// What can be seen of the agent from outside: who it is, and its controllers as they are
// at the moment. AgentService, the health checks and the state that goes upstream all look
// at this one view, so they never tell different stories.
import { create } from "@bufbuild/protobuf";
import { type AgentStatus, AgentStatusSchema, type ControllerStatus } from "../gen/krane/v1/agent_pb.ts";
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
