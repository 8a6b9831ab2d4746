// Decides when the row of a deleted object may be purged. Its Delete has to stay in the
// streams until the region's agent has applied it, and for a while longer: an agent that
// restarts, or a cluster that was restored, may still have the object, and an agent does
// not delete an object just because its row is missing (K5).
//
// - The current agent has to confirm the deletion itself. What a previous agent had settled
//   is shown to people meanwhile, but the new one may have found the object in the cluster.
// - Time counts only up to the agent's last report. A restored database would otherwise
//   purge at once what its backup lists as gone, before the agent can report that it is
//   ahead of the backup.
import { ObjectView_Phase as Phase } from "../gen/krane/admin/v1/admin_pb.ts";
import type { KindName } from "../kinds/kinds.ts";
import { isSettled, phaseFacts, phaseOf } from "./phase.ts";
import type { AgentRecord, StoredObject } from "./store.ts";
import { isListComplete } from "./trouble-news.ts";

/** Since when an object has been gone, after the deletion with this version. */
export interface Gone {
  readonly version: bigint;
  readonly atMs: number;
}

/** What the agent reported; empty for an agent that only reports on deployments. */
export type HeardOfAgent = Pick<AgentRecord, "state" | "known">;

/** Undefined while something of the object may be left. `before` is the note from the previous check. */
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
    // A failed deletion may be missing from the agent's list, which is limited.
    if (isTroubled || !isListComplete(known ?? state)) return undefined;
    // Both checks are needed: one is the agent's own report, the other knows whether that report predates a restore.
    if (!isSettled(kind, object.row, state) || !facts.isSettled) return undefined;
  }
  return before?.version === version ? before : { version, atMs: nowMs };
}

/** Objects gone since before this time are purged. */
export function forgottenBefore({ state }: HeardOfAgent, ageMaxMs: number, nowMs: number): number {
  return Math.min(nowMs, state?.atMs ?? nowMs) - ageMaxMs;
}
