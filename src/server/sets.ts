// Sets of objects: what was applied together under one name, so that a later apply finds what its files no longer have.
// An object is in one set at most, and in none once it is deleted.
import type { KindName } from "../kinds/kinds.ts";

export interface SetMember {
  readonly kind: KindName | "environment" | "app";
  readonly id: string;
}

/** Both methods reject with `unknown_region` when the region is not registered. */
export interface SetStore {
  /** Those that are not desired are ignored; the others leave the set that they were in. */
  join(region: string, set: string, members: readonly SetMember[]): Promise<void>;
  /** Ordered by kind and id. */
  members(region: string, set: string): Promise<readonly SetMember[]>;
}

/** Whether the event of history takes its object out of its set. */
export function endsMembership({ event }: { readonly event: string }): boolean {
  return event === "stopped" || event === "removed";
}

/** The sets of one region in memory. */
export class RegionSets {
  /** By kind and id. */
  private readonly joined = new Map<string, SetMember & { readonly set: string }>();

  join(set: string, { kind, id }: SetMember): void {
    this.joined.set(`${kind} ${id}`, { kind, id, set });
  }

  leave({ kind, id }: SetMember): void {
    this.joined.delete(`${kind} ${id}`);
  }

  members(set: string): readonly SetMember[] {
    const found = [...this.joined].filter(([, each]) => each.set === set);
    return found.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { kind, id }]) => ({ kind, id }));
  }
}
