// Collects what `krane why` needs to know about an object: what the agent reported about its newest version, the
// status of its controller, and its pod counts.
import { type AgentView, ObjectKind, type ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import type { ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { PodCounts } from "../kinds/kind-view.ts";
import { kindOfObject } from "../kinds/kinds.ts";
import { viewOf } from "../kinds/object-view.ts";

export interface Facts {
  readonly object: ObjectView;
  readonly agent: AgentView;
  readonly nowMs: number;
  /** What the agent reports about the newest version. */
  readonly trouble: ObjectStatus | undefined;
  /** What it reported about an older one. */
  readonly earlierTrouble: ObjectStatus | undefined;
  readonly controller: ControllerStatus | undefined;
  readonly pods: PodCounts;
}

/** The agent's controller for the kind; empty if the kind is unknown. */
export function controllerOf(kind: ObjectKind): string {
  return kindOfObject(kind)?.controller ?? "";
}

export function factsOf(object: ObjectView, agent: AgentView, nowMs: number): Facts {
  const { trouble } = object;
  // Version 0 is trouble with an object that the control plane never gave a version; it is about no desired version.
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
