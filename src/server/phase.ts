// How far an object has come, from what is wanted of it, what its agent says and what
// was reported. Pure, and the only place that decides it.
//
// - "Settled" is the agent's word: it has applied this version, or refused it for good.
//   Until then nothing that was reported is about this version. Where it may have refused
//   it without saying so, it is not taken for settled; see unlisted-refusals.ts.
// - Where the agent speaks of an older version than the one wanted now, what it says is
//   about that one.
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../gen/ctrl/v1/sentinel_pb.ts";
import { ObjectView_Phase as Phase } from "../gen/krane/admin/v1/admin_pb.ts";
import {
  BreakerStatus_State as Breaker,
  type ControllerStatus,
  type ObjectStatus,
  ObjectStatus_Outcome as Outcome,
} from "../gen/krane/v1/agent_pb.ts";
import { type ApplyMessage, type KindName, kindOf, kindOfController } from "../kinds/kinds.ts";
import { hasSettled, settledBy } from "./known-state.ts";
import type { AgentReport, DeploymentReport, Row, SentinelReport, StoredObject } from "./store.ts";
import { unlistedTrouble } from "./unlisted-refusals.ts";

/** What the agent says about an object where something is wrong. */
export function troubleOf(
  kind: KindName,
  { id, spec }: Row<KindName>,
  agent: AgentReport | undefined,
): ObjectStatus | undefined {
  const listed = (agent?.report.troubledObjects ?? []).filter(
    ({ controller }) => kindOfController(controller)?.name === kind,
  );
  // One that the agent only knows by its name is the one of that name.
  const byName = (status: ObjectStatus) => status.id === "" && status.key === kindOf(kind).keyOf(spec);
  return listed.find((status) => status.id === id) ?? listed.find(byName);
}

/** Whether the agent has applied or refused the row as it is. */
export function isSettled(
  kind: KindName,
  { version }: Row<KindName>,
  agent: AgentReport | undefined,
  trouble?: ObjectStatus,
): boolean {
  const controller = controllerOf(kind, agent);
  const isRefused = trouble?.outcome === Outcome.PARKED && trouble.desiredVersion >= version;
  return isRefused || hasSettled(settledBy(controller?.stream), version);
}

/** Whether the agent has failed to report so often that it tries no more for a while. */
function areReportsHeldBack(kind: KindName, agent: AgentReport | undefined): boolean {
  return controllerOf(kind, agent)?.breaker?.state === Breaker.OPEN;
}

function controllerOf(kind: KindName, agent: AgentReport | undefined): ControllerStatus | undefined {
  return agent?.report.state?.controllers.find(({ name }) => kindOfController(name)?.name === kind);
}

export function phaseFacts<K extends KindName>(
  kind: K,
  object: StoredObject<K>,
  agent: AgentReport | undefined,
): PhaseFacts<K> {
  const { row } = object;
  const listed = troubleOf(kind, row, agent);
  const settled = isSettled(kind, row, agent, listed);
  const isListed = listed !== undefined && listed.desiredVersion >= row.version;
  const unlisted = settled && !isListed ? unlistedOf(kind, row, agent) : undefined;
  return {
    ...object,
    kind,
    trouble: listed ?? unlisted,
    isSettled: settled && unlisted === undefined,
    isHeldBack: areReportsHeldBack(kind, agent),
  };
}

function unlistedOf(
  kind: KindName,
  { id, spec, version: desiredVersion }: Row<KindName>,
  agent: AgentReport | undefined,
): ObjectStatus | undefined {
  const controller = controllerOf(kind, agent);
  return (
    agent &&
    controller &&
    unlistedTrouble(controller, agent.report, { id, key: kindOf(kind).keyOf(spec), desiredVersion })
  );
}

export interface PhaseFacts<K extends KindName> extends StoredObject<K> {
  readonly kind: K;
  /** As far as is known. */
  readonly isSettled: boolean;
  /** Whether reports on objects of the kind are held back. */
  readonly isHeldBack: boolean;
  readonly trouble: ObjectStatus | undefined;
}

export function phaseOf<K extends KindName>(facts: PhaseFacts<K>): Phase {
  const { row } = facts;
  if (row.desired === "unreadable") return Phase.UNSPECIFIED;
  if (row.desired === "stopped") return isGone(facts) ? Phase.DELETED : Phase.DELETING;
  if (hasFailed(facts)) return Phase.FAILED;
  if (!facts.isSettled) return Phase.WAITING;
  if (facts.kind === "policy") return Phase.READY;
  // What came before the change says nothing about it, unless there was nothing new to tell since. An agent that
  // cannot tell leaves that open.
  if (facts.isHeldBack && facts.reportedVersion < row.version) return Phase.PROGRESSING;
  if (facts.kind === "deployment")
    return deploymentPhase(row.spec as ApplyMessage<"deployment">, facts.deployment);
  return sentinelPhase(row.spec as ApplyMessage<"sentinel">, facts.sentinel);
}

function isGone({
  row,
  deployment,
  reportedVersion,
  isSettled: settled,
  trouble,
}: PhaseFacts<KindName>): boolean {
  // Reported after the order, and hence about it.
  if (deployment?.exists === false && reportedVersion >= row.version) return true;
  // A deletion that was refused is settled too, and what it was about is still there.
  if (trouble !== undefined && trouble.desiredVersion >= row.version) return false;
  return settled && deployment?.exists !== true;
}

function hasFailed({ row, trouble }: PhaseFacts<KindName>): boolean {
  if (trouble === undefined || trouble.desiredVersion < row.version) return false;
  const isRefused = trouble.outcome === Outcome.PARKED || trouble.outcome === Outcome.CONFLICT;
  return isRefused || trouble.failing !== "";
}

function deploymentPhase(
  { replicas }: ApplyMessage<"deployment">,
  report: DeploymentReport | undefined,
): Phase {
  const instances = report?.instances ?? [];
  if (replicas === 0) return instances.length === 0 ? Phase.PAUSED : Phase.PROGRESSING;
  const running = instances.filter(({ status }) => status === Status.RUNNING).length;
  // The agent replaces no pod: one of an earlier description serves, but not what is wanted now.
  const isCurrent = !instances.some(({ outdated }) => outdated);
  if (running === replicas && instances.length === replicas && isCurrent) return Phase.READY;
  const cannotRun = running < replicas && instances.some(({ status }) => status === Status.FAILED);
  return cannotRun ? Phase.FAILED : Phase.PROGRESSING;
}

function sentinelPhase(
  { replicas, image }: ApplyMessage<"sentinel">,
  report: SentinelReport | undefined,
): Phase {
  if (replicas === 0) {
    return (report?.availableReplicas ?? 0) === 0 ? Phase.PAUSED : Phase.PROGRESSING;
  }
  if (report === undefined) return Phase.PROGRESSING;
  const { health, availableReplicas, runningImage } = report;
  // In the middle of a roll-out the agent names no image: the pods of before serve, and are enough.
  const isReady = health === Health.HEALTHY && availableReplicas >= replicas && runningImage === image;
  return isReady ? Phase.READY : Phase.PROGRESSING;
}
