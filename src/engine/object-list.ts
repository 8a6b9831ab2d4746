// Every object that a controller knows, whether it is wanted, there, or only remembered.
import type { ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import { type ObjectFilter, objectStatusMessage } from "./controller-status.ts";
import type { DesiredStore } from "./desired-store.ts";
import { isTroubled, type ObjectStatuses, type Outcome } from "./object-status.ts";

/** What settles a version without carrying it out. */
const refusals: ReadonlySet<Outcome> = new Set(["parked", "conflict"]);

export interface KnownObjects<Spec> {
  /** The controller's name. */
  readonly controller: string;
  readonly definition: ControllerDefinition<Spec>;
  readonly store: DesiredStore<Spec>;
  readonly statuses: ObjectStatuses;
}

/** Asked for every other second, so it makes nothing. */
export function countObjects<Spec>({ definition, store, statuses }: KnownObjects<Spec>): number {
  let count = store.size;
  for (const { key } of definition.managed()) if (store.get(key) === undefined) count += 1;
  for (const key of statuses.keys())
    if (store.get(key) === undefined && definition.managedByKey(key) === undefined) count += 1;
  return count;
}

function keysOf<Spec>({ definition, store, statuses }: KnownObjects<Spec>): ReadonlySet<string> {
  const seen = new Set<string>();
  for (const { key } of definition.managed()) seen.add(key);
  for (const { key } of store.entries()) seen.add(key);
  for (const key of statuses.keys()) seen.add(key);
  return seen;
}

/**
 * In the order of keys, unless asked otherwise. What is not asked for is not made: a page of a thousand objects costs a
 * page.
 */
export function listObjects<Spec>(
  known: KnownObjects<Spec>,
  { onlyTroubled, refusedFirst = false, after = "", limit }: ObjectFilter,
): ObjectStatus[] {
  const { definition, store, statuses } = known;
  const failing = definition.failing();
  const isWanted = (key: string) =>
    key > after && (!onlyTroubled || failing.has(key) || isTroubled(statuses.get(key)?.outcome ?? "pending"));
  const wanted = [...keysOf(known)].filter(isWanted).sort();
  const isRefused = (key: string) => refusals.has(statuses.get(key)?.outcome ?? "pending");
  if (refusedFirst) wanted.sort((a, b) => Number(isRefused(b)) - Number(isRefused(a)));
  return wanted.slice(0, limit).map((key) =>
    objectStatusMessage({
      controller: known.controller,
      key,
      id: store.get(key)?.id ?? definition.managedByKey(key)?.id ?? "",
      entry: store.get(key),
      record: statuses.get(key),
      readiness: definition.readiness(key),
      failing: failing.get(key) ?? "",
    }),
  );
}
