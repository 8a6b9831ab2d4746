// What is known about an object when somebody asks why, sorted out: which of the agent's words are about its
// newest version, which controller looks after it, how many of its pods do what.
import {
  type ReportDeploymentStatusRequest_Update_Instance as Instance,
  ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus,
} from "../gen/ctrl/v1/deployment_pb.ts";
import { type AgentView, ObjectKind, type ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import type { ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";

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

export interface PodCounts {
  /** Undefined for what has no pods, and where the description cannot be read. */
  readonly wanted: number | undefined;
  /** Whether the numbers below were reported. */
  readonly isReported: boolean;
  readonly running: number;
  readonly failed: number;
  readonly pending: number;
  /** Of them all, those that an earlier description made. */
  readonly outdated: number;
  /** Of these, those that do not run. */
  readonly outdatedDown: number;
  /** How many there are beyond those that are wanted. */
  readonly surplus: number;
}

/** An agent that was not heard of for longer is silent: heartbeats come every 30 s, so three are missing. */
export const silentMs = 90_000;

const controllers: Partial<Readonly<Record<ObjectKind, string>>> = {
  [ObjectKind.UNSPECIFIED]: "",
  [ObjectKind.DEPLOYMENT]: "deployments",
  [ObjectKind.SENTINEL]: "sentinels",
  [ObjectKind.POLICY]: "cilium",
};

/** The name of the agent's controller that looks after objects of the kind; empty where the kind is not known. */
export function controllerOf(kind: ObjectKind): string {
  return controllers[kind] ?? "";
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
    pods: countPods(object),
  };
}

function countPods({ spec, deployment, sentinel }: ObjectView): PodCounts {
  const described = spec?.spec;
  const wanted =
    described?.case === "deployment" || described?.case === "sentinel" ? described.value.replicas : undefined;
  if (sentinel !== undefined) {
    const running = sentinel.availableReplicas;
    const surplus = Math.max(0, running - (wanted ?? running));
    return {
      wanted,
      isReported: true,
      running,
      failed: 0,
      pending: 0,
      outdated: 0,
      outdatedDown: 0,
      surplus,
    };
  }
  const instances = deployment?.instances ?? [];
  const count = (isMeant: (instance: Instance) => boolean) => instances.filter(isMeant).length;
  const running = count(({ status }) => status === InstanceStatus.RUNNING);
  const failed = count(({ status }) => status === InstanceStatus.FAILED);
  return {
    wanted,
    isReported: deployment !== undefined,
    running,
    failed,
    pending: instances.length - running - failed,
    outdated: count(({ outdated }) => outdated),
    outdatedDown: count(({ outdated, status }) => outdated && status !== InstanceStatus.RUNNING),
    surplus: Math.max(0, instances.length - (wanted ?? instances.length)),
  };
}
