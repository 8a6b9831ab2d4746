// Detects when an agent rejected more objects than it lists. A rejection settles a version just
// as applying it does, and only the list of troubles tells the two apart. That list is cut at
// 100 objects, shared with other kinds of trouble; the counts are complete. If the counts are
// higher, an object that is not listed may be applied or rejected: without this check, a
// rejected deletion would be shown as done.
import { create } from "@bufbuild/protobuf";
import type { ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";
import {
  type ControllerStatus,
  type ObjectStatus,
  ObjectStatusSchema,
  ObjectStatus_Outcome as Outcome,
} from "../gen/krane/v1/agent_pb.ts";

type RefusalCounts = Pick<ControllerStatus, "parked" | "conflicts">;

/** The value type of a message field. */
const countMax = 2 ** 32 - 1;

/** The status of an object that the agent does not list; undefined if that means that all is well. */
export function unlistedTrouble(
  controller: ControllerStatus,
  { troubledObjects }: ReportAgentStateRequest,
  object: Pick<ObjectStatus, "key" | "id" | "desiredVersion">,
): ObjectStatus | undefined {
  const { name } = controller;
  const refused = controller.parked + controller.conflicts;
  const { parked, conflicts } = listedRefusals(name, troubledObjects);
  const listed = parked + conflicts;
  if (listed >= refused) return undefined;
  const reason = `unknown whether it was applied: ${refused} objects of ${name} were rejected, and the agent lists only ${listed} of them`;
  return create(ObjectStatusSchema, { ...object, controller: name, outcome: Outcome.UNSPECIFIED, reason });
}

/** The counts of a controller, plus troubles that it did not count. */
export function countsWith(
  { name, parked, conflicts }: ControllerStatus,
  others: readonly ObjectStatus[],
): RefusalCounts {
  const more = listedRefusals(name, others);
  return {
    parked: Math.min(parked + more.parked, countMax),
    conflicts: Math.min(conflicts + more.conflicts, countMax),
  };
}

function listedRefusals(name: string, statuses: readonly ObjectStatus[]): RefusalCounts {
  const count = (outcome: Outcome) =>
    statuses.filter((status) => status.controller === name && status.outcome === outcome).length;
  return { parked: count(Outcome.PARKED), conflicts: count(Outcome.CONFLICT) };
}
