// What is known about an object when somebody asks why, sorted out: which of the agent's words are about its
// newest version, which controller looks after it, how many of its pods do what.
import { type AgentView, ObjectKind, type ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import type { ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { PodCounts } from "../kinds/kind-view.ts";
import { kindOfObject } from "../kinds/kinds.ts";
import { viewOf } from "../kinds/object-view.ts";

export interface Facts {
  readonly object: ObjectView;
  readonly agent: AgentView;
  readonly nowMs: number;
  /** What the agent says about the newest version. */
  readonly trouble: ObjectStatus | undefined;
  /** What it said about an earlier one. */
  readonly earlierTrouble: ObjectStatus | undefined;
  readonly controller: ControllerStatus | undefined;
  readonly pods: PodCounts;
}

/** An agent that was not heard of for longer is silent: heartbeats come every 30 s, so three are missing. */
export const silentMs = 90_000;

/** The name of the agent's controller that looks after objects of the kind; empty where the kind is not known. */
export function controllerOf(kind: ObjectKind): string {
  return kindOfObject(kind)?.controller ?? "";
}

export function factsOf(object: ObjectView, agent: AgentView, nowMs: number): Facts {
  const { trouble } = object;
  // Version 0 is trouble about what the control plane never numbered, and says nothing about an order.
  const isCurrent = trouble !== undefined && trouble.desiredVersion >= object.version;
  const name = controllerOf(object.ref?.kind ?? ObjectKind.UNSPECIFIED);
  return {
    object,
    agent,
    nowMs,
    trouble: isCurrent ? trouble : undefined,
    earlierTrouble: isCurrent ? undefined : trouble,
    controller: agent.state?.controllers.find((each) => each.name === name),
    pods: viewOf(object).podsOf(object),
  };
}
