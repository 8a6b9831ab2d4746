// Whether a look at a key would find nothing to do and nothing to tell. It is as thorough as that look; but once a
// minute it is made for every key, and almost always without need of the rest.
import type { ReconcileDeps } from "./reconcile.ts";

export type InOrderDeps<Spec> = Pick<
  ReconcileDeps<Spec>,
  "store" | "definition" | "guard" | "applier" | "statuses"
>;

/** False also for a key that cannot be looked at: its worker tells of that. */
export function isInOrder<Spec>(key: string, deps: InOrderDeps<Spec>): boolean {
  try {
    return isSettled(key, deps);
  } catch {
    return false;
  }
}

function isSettled<Spec>(
  key: string,
  { store, definition, guard, applier, statuses }: InOrderDeps<Spec>,
): boolean {
  const entry = store.get(key);
  const record = statuses.get(key);
  if (entry?.want.kind !== "apply" || guard.isSuspected(key)) return false;
  if (record?.outcome !== "unchanged" || record.appliedVersion !== entry.version) return false;
  const plan = definition.plan(key, entry);
  return plan.kind === "apply" && applier.isDone(plan.steps);
}
