// Computes an object's phase from its desired state, its agent's state and its last report.
// Pure, and the only place that decides it.
//
// - "Settled" is reported by the agent: it has applied this version, or rejected it. Until
//   then no report is about this version. If the agent may have rejected it without listing
//   it, it does not count as settled; see unlisted-refusals.ts.
// - If the agent reports trouble with an older version than the desired one, the trouble is
//   about that older version.
import { ObjectView_Phase as Phase } from "../gen/krane/admin/v1/admin_pb.ts";
import {
  BreakerStatus_State as Breaker,
  type ControllerStatus,
  type ObjectStatus,
  ObjectStatus_Outcome as Outcome,
} from "../gen/krane/v1/agent_pb.ts";
import { type KindName, kindOf, kindOfController } from "../kinds/kinds.ts";
import { hasSettled, settledBy } from "./known-state.ts";
import type { AgentReport, Row, StoredObject } from "./store.ts";
import { unlistedTrouble } from "./unlisted-refusals.ts";

/** The trouble that the agent reports for an object. */
export function troubleOf(
  kind: KindName,
  { id, spec }: Row<KindName>,
  agent: AgentReport | undefined,
): ObjectStatus | undefined {
  const listed = (agent?.report.troubledObjects ?? []).filter(
    ({ controller }) => kindOfController(controller)?.name === kind,
  );
  // An object that the agent knows only by name is the one with that name.
  const byName = (status: ObjectStatus) => status.id === "" && status.key === kindOf(kind).keyOf(spec);
  return listed.find((status) => status.id === id) ?? listed.find(byName);
}

/** Whether the agent has applied or rejected the row in its current version. */
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

/** Whether so many of the agent's reports failed that it has paused reporting. */
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
  /** As far as known. */
  readonly isSettled: boolean;
  /** Whether reports on objects of the kind are paused. */
  readonly isHeldBack: boolean;
  readonly trouble: ObjectStatus | undefined;
}

export function phaseOf<K extends KindName>(facts: PhaseFacts<K>): Phase {
  const { row } = facts;
  if (row.desired === "unreadable") return Phase.UNSPECIFIED;
  if (row.desired === "stopped") return isGone(facts) ? Phase.DELETED : Phase.DELETING;
  if (hasFailed(facts)) return Phase.FAILED;
  if (!facts.isSettled) return Phase.WAITING;
  const { reports } = kindOf(facts.kind);
  if (reports === undefined) return Phase.READY;
  // A report from before the change says nothing about it, unless the agent had nothing new to report since. An agent
  // that cannot tell leaves that open.
  if (facts.isHeldBack && facts.reportedVersion < row.version) return Phase.PROGRESSING;
  return reports.phaseOf(row.spec, facts.report);
}

function isGone({
  row,
  report,
  reportedVersion,
  isSettled: settled,
  trouble,
}: PhaseFacts<KindName>): boolean {
  // Reported after the deletion was ordered, so it is about the deletion.
  if (report?.exists === false && reportedVersion >= row.version) return true;
  // A rejected deletion is settled too, and its object still exists.
  if (trouble !== undefined && trouble.desiredVersion >= row.version) return false;
  return settled && report?.exists !== true;
}

function hasFailed({ row, trouble }: PhaseFacts<KindName>): boolean {
  if (trouble === undefined || trouble.desiredVersion < row.version) return false;
  const isRefused = trouble.outcome === Outcome.PARKED || trouble.outcome === Outcome.CONFLICT;
  return isRefused || trouble.failing !== "";
}
