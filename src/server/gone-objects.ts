// When the row of an object that was deleted may be forgotten. Its Delete has to stay in
// the streams until the agent of the region has carried it out, and for a while longer:
// an agent that starts anew, or a cluster that was restored, may still have the object,
// and a row that is missing is a suspicion and no order (K5).
import { ObjectView_Phase as Phase } from "../gen/krane/admin/v1/admin_pb.ts";
import type { Kind } from "./kinds.ts";
import { phaseFacts, phaseOf } from "./phase.ts";
import type { AgentReport, StoredObject } from "./store.ts";
import { isListComplete } from "./trouble-news.ts";

/** Since when nothing has been left of an object, after the order with this version. */
export interface Gone {
  readonly version: bigint;
  readonly atMs: number;
}

/** Undefined while something may be left of it. `before` is what was noted when it was last looked at. */
export function goneSince<K extends Kind>(
  kind: K,
  object: StoredObject<K>,
  agent: AgentReport | undefined,
  before: Gone | undefined,
  nowMs: number,
): Gone | undefined {
  if (phaseOf(phaseFacts(kind, object, agent)) !== Phase.DELETED) return undefined;
  // One that could not be deleted may be among those that did not fit into the agent's list.
  const wasReported = object.deployment?.exists === false;
  if (!wasReported && agent !== undefined && !isListComplete(agent)) return undefined;
  const { version } = object.row;
  return before?.version === version ? before : { version, atMs: nowMs };
}
