// When the row of an object that was deleted may be forgotten. Its Delete has to stay in
// the streams until the agent of the region has carried it out, and for a while longer:
// an agent that starts anew, or a cluster that was restored, may still have the object,
// and a row that is missing is a suspicion and no order (K5).
//
// - The agent that is there has to say so itself. What an earlier one had settled is what
//   people see meanwhile; but the new one may have found a cluster with the object in it.
// - Time counts up to the agent's last report and no further: a database that was restored
//   would otherwise forget at once what its backup calls gone, before the agent can say
//   that it has come further than that.
import { ObjectView_Phase as Phase } from "../gen/krane/admin/v1/admin_pb.ts";
import type { KindName } from "../kinds/kinds.ts";
import { isSettled, phaseFacts, phaseOf } from "./phase.ts";
import type { AgentRecord, StoredObject } from "./store.ts";
import { isListComplete } from "./trouble-news.ts";

/** Since when nothing has been left of an object, after the order with this version. */
export interface Gone {
  readonly version: bigint;
  readonly atMs: number;
}

/** What was heard of the agent; nothing of one that only reports on deployments. */
export type HeardOfAgent = Pick<AgentRecord, "state" | "known">;

/** Undefined while something may be left of it. `before` is what was noted when it was last looked at. */
export function goneSince<K extends KindName>(
  kind: K,
  object: StoredObject<K>,
  { state, known }: HeardOfAgent,
  before: Gone | undefined,
  nowMs: number,
): Gone | undefined {
  const facts = phaseFacts(kind, object, known);
  if (phaseOf(facts) !== Phase.DELETED) return undefined;
  const { version } = object.row;
  if (state !== undefined) {
    const isTroubled = facts.trouble !== undefined && facts.trouble.desiredVersion >= version;
    // One that could not be deleted may be among those that did not fit into the agent's list.
    if (isTroubled || !isListComplete(known ?? state)) return undefined;
    // Both: the one is its own word, the other knows when that is of another life of this control plane.
    if (!isSettled(kind, object.row, state) || !facts.isSettled) return undefined;
  }
  return before?.version === version ? before : { version, atMs: nowMs };
}

/** What has been gone since before then is forgotten. */
export function forgottenBefore({ state }: HeardOfAgent, ageMaxMs: number, nowMs: number): number {
  return Math.min(nowMs, state?.atMs ?? nowMs) - ageMaxMs;
}
