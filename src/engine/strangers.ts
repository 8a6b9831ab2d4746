// Finds the objects that carry the seal of another krane, and which of them desired state names: only those may be
// adopted. It reads the caches and makes the plans when somebody asks, and the plans only if there is such an object.
import { isClaimable, type Ownership } from "../model/ownership.ts";
import { isSealedStranger } from "./adoptions.ts";
import type { StepsApplier } from "./apply-steps.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { DesiredStore } from "./desired-store.ts";
import type { OwnedObject, PlanStep } from "./plan.ts";
import { kindTitle } from "./seal-counts.ts";

export interface FoundStranger {
  /** With the group, as in the status of a cache. */
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Why it is not this krane's. */
  readonly reason: string;
  /** The keys of desired state that name it; none if it must be left alone. */
  readonly keys: readonly string[];
  readonly id: string;
  /** Why it must be left alone; empty if it can be adopted. */
  readonly obstacle: string;
}

export interface StrangerSources<Spec> {
  readonly definition: Pick<ControllerDefinition<Spec>, "watchedKinds" | "plan" | "prerequisites">;
  readonly store: Pick<DesiredStore<Spec>, "entries" | "get">;
  readonly applier: Pick<StepsApplier, "checked">;
  /** Whether desired state has been read: what it does not name may come a moment later. */
  isInformed(): boolean;
}

interface Found {
  readonly kind: string;
  readonly key: string;
  readonly uid: string;
  readonly reason: string;
  readonly keys: Set<string>;
  id: string;
  obstacle: string;
}

const notDesired = "not in desired state";
const notKnown = "not in desired state, which is still being read";

/** Sorted by kind, namespace and name. */
export function findStrangers<Spec>(sources: StrangerSources<Spec>): readonly FoundStranger[] {
  const found = collect(sources);
  if (found.size === 0) return [];
  nameWanted(found, sources);
  return [...found]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { key, keys, ...stranger }]) => {
      const [namespace = "", name = ""] = key.split("/");
      return { ...stranger, namespace, name, keys: [...keys] };
    });
}

function collect<Spec>({ definition, applier, isInformed }: StrangerSources<Spec>): Map<string, Found> {
  const found = new Map<string, Found>();
  const obstacle = isInformed() ? notDesired : notKnown;
  const note = (kind: string, entry: { key: string; uid: string; value: { ownership: Ownership } }) => {
    const { key, uid, value } = entry;
    if (!isSealedStranger(value.ownership)) return;
    const reason = "reason" in value.ownership ? value.ownership.reason : "";
    found.set(`${kind} ${key}`, { kind, key, uid, reason, keys: new Set(), id: "", obstacle });
  };
  for (const each of definition.watchedKinds) {
    const { kind } = each.status();
    for (const entry of each.owned ?? []) note(kind, entry);
  }
  for (const entry of applier.checked()) note(kindTitle(entry.kind), entry);
  return found;
}

function nameWanted<Spec>(
  found: ReadonlyMap<string, Found>,
  { definition, store }: StrangerSources<Spec>,
): void {
  const keys = new Set<string>();
  for (const entry of store.entries()) {
    if (entry.want.kind !== "apply") continue;
    for (const other of definition.prerequisites?.(entry) ?? []) keys.add(other);
    keys.add(entry.key);
  }
  for (const key of keys) {
    const plan = definition.plan(key, store.get(key));
    if (plan.kind === "apply") walk(plan.steps, key, found);
  }
}

/** Stops at an object that blocks the plan and cannot be adopted: what comes after it belongs to that object. */
function walk(steps: readonly PlanStep[], key: string, found: ReadonlyMap<string, Found>): void {
  for (const step of steps) {
    if (step.kind === "each") for (const each of step.steps()) walk([each], key, found);
    if (step.kind === "checked") {
      const { kind, ref } = step.object;
      const stranger = found.get(`${kindTitle(kind)} ${ref.namespace ?? ""}/${ref.name}`);
      if (stranger !== undefined) named(stranger, key, "");
    }
    if (step.kind === "object" && !walkObject(step.object, key, found)) return;
  }
}

function walkObject(object: OwnedObject, key: string, found: ReadonlyMap<string, Found>): boolean {
  const { kind, ref } = object;
  const stranger = found.get(`${kindTitle(kind)} ${ref.namespace ?? ""}/${ref.name}`);
  if (stranger === undefined) {
    const live = object.live();
    return live === undefined || isClaimable(live.ownership);
  }
  const adoptee = object.adoptee();
  if (adoptee?.uid !== stranger.uid) return false;
  if (!isClaimable(adoptee.ownership)) {
    stranger.obstacle = adoptee.ownership.reason;
    return false;
  }
  const { id, environmentId } = object.ids();
  named(stranger, key, id ?? environmentId ?? "");
  return true;
}

function named(stranger: Found, key: string, id: string): void {
  stranger.keys.add(key);
  stranger.id = id;
  stranger.obstacle = "";
}
