// Counts which seals the cached objects have. It reads the caches when somebody asks and they have changed, so it costs
// nothing per event.
import type { ResourceKind } from "../kube/types.ts";
import type { Ownership } from "../model/ownership.ts";
import type { CheckedEntry } from "./checked-objects.ts";
import type { DefinedKind } from "./controller-definition.ts";
import { Remembered } from "./remembered.ts";

export interface SealCounts {
  /** With the group, as in the status of a cache. */
  readonly kind: string;
  /** Whether all objects of the kind are known; if not, the counts are too low. */
  readonly synced: boolean;
  /** Sealed with the current key. */
  readonly current: number;
  /** One entry for each older key that the agent has, also without objects. */
  readonly older: readonly { readonly keyId: string; readonly objects: number }[];
  /** How many of the sealed ones krane did not create. */
  readonly adopted: number;
  readonly unsealed: number;
  readonly otherRegion: number;
  readonly unknownKey: number;
  /** With krane's label, but neither a valid seal nor krane's field manager. */
  readonly foreign: number;
}

/** What is counted of a kind. */
export interface CountedKind {
  readonly kind: string;
  readonly synced: boolean;
  readonly objects: Iterable<{ readonly value: { readonly ownership: Ownership } }>;
}

/** The counts of each kind, until its objects change. */
export type KnownCounts = WeakMap<DefinedKind, Remembered<SealCounts>>;

/** Of the kinds that krane writes, and of what it has read of kinds that are not watched. */
export function countAllSeals(
  kinds: readonly DefinedKind[],
  checked: Iterable<CheckedEntry>,
  olderKeyIds: readonly string[],
  known: KnownCounts = new WeakMap(),
): readonly SealCounts[] {
  const watched = kinds.flatMap((each) => {
    const { owned: objects, isComplete: synced } = each;
    if (objects === undefined) return [];
    const { kind } = each.status();
    const remembered = known.get(each) ?? new Remembered<SealCounts>();
    known.set(each, remembered);
    const count = () => countSeals({ kind, synced, objects }, olderKeyIds);
    return [{ ...remembered.at(each.revision, count), synced }];
  });
  const unwatched = new Map<string, CheckedEntry[]>();
  for (const entry of checked) {
    const kind = kindTitle(entry.kind);
    const known = unwatched.get(kind);
    if (known === undefined) unwatched.set(kind, [entry]);
    else known.push(entry);
  }
  const counted = [...unwatched].map(([kind, objects]) => ({ kind, synced: true, objects }));
  return [...watched, ...counted.map((each) => countSeals(each, olderKeyIds))];
}

/** Called every two seconds while objects come and go, so it allocates nothing per object. */
export function countSeals(
  { kind, synced, objects }: CountedKind,
  olderKeyIds: readonly string[],
): SealCounts {
  const older = olderKeyIds.map((keyId) => ({ keyId, objects: 0 }));
  const counts = { current: 0, adopted: 0, unsealed: 0, otherRegion: 0, unknownKey: 0, foreign: 0 };
  for (const { value } of objects) {
    const { ownership } = value;
    switch (ownership.kind) {
      case "ours": {
        const key = ownership.isOutdated ? older.find(({ keyId }) => keyId === ownership.keyId) : undefined;
        if (key === undefined) counts.current += 1;
        else key.objects += 1;
        if (ownership.isAdopted) counts.adopted += 1;
        break;
      }
      case "unsealed":
        counts.unsealed += 1;
        break;
      case "foreign":
      case "other-id":
        counts[columnOf(ownership)] += 1;
    }
  }
  return { kind, synced, older, ...counts };
}

/** The sums over all kinds, by the values of the metric's label. */
export function sealTotals(seals: readonly SealCounts[]) {
  const sum = (pick: (counts: SealCounts) => number) =>
    seals.reduce((total, counts) => total + pick(counts), 0);
  return [
    ["current", sum(({ current }) => current)],
    ["older", sum(({ older }) => older.reduce((total, { objects }) => total + objects, 0))],
    ["unsealed", sum(({ unsealed }) => unsealed)],
    ["other_region", sum(({ otherRegion }) => otherRegion)],
    ["unknown_key", sum(({ unknownKey }) => unknownKey)],
    ["foreign", sum(({ foreign }) => foreign)],
  ] as const;
}

function columnOf(ownership: Extract<Ownership, { readonly kind: "foreign" | "other-id" }>) {
  const seal = ownership.kind === "foreign" ? ownership.seal : undefined;
  if (seal === "other-key") return "unknownKey";
  return seal === "other-region" ? "otherRegion" : "foreign";
}

/** With the group, as in the status of a cache. */
export function kindTitle({ group, kind }: ResourceKind): string {
  return group === "" ? kind : `${group}/${kind}`;
}
