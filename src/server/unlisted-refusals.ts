// Whether an agent names everything that it refused. A refusal settles a version just as
// carrying it out does, and only the list of troubles tells the two apart. That list is cut
// at 100 objects, and other kinds of trouble take places in it too; the counts are complete.
// Where they say more, one that is not on the list may be done or refused: a deletion that
// was refused would otherwise be shown as carried out.
import { create } from "@bufbuild/protobuf";
import type { ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";
import {
  type ControllerStatus,
  type ObjectStatus,
  ObjectStatusSchema,
  ObjectStatus_Outcome as Outcome,
} from "../gen/krane/v1/agent_pb.ts";

type RefusalCounts = Pick<ControllerStatus, "parked" | "conflicts">;

/** What a field of a message holds. */
const countMax = 2 ** 32 - 1;

/** What the agent says about an object that it does not list; undefined where that means that all is well. */
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
  const reason = `whether it was carried out is not known: ${refused} objects of ${name} were refused, and the agent lists ${listed} of them`;
  return create(ObjectStatusSchema, { ...object, controller: name, outcome: Outcome.UNSPECIFIED, reason });
}

/** The counts of a controller together with troubles that it did not count. */
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
