import assert from "node:assert/strict";
import { test } from "node:test";
import { secrets } from "../kube/resources.ts";
import type { Ownership } from "../model/ownership.ts";
import type { DefinedKind, OwnedEntry } from "./controller-definition.ts";
import { countAllSeals, countSeals, sealTotals } from "./seal-counts.ts";

const ours: Ownership = { kind: "ours", isOutdated: false, isAdopted: false };
const byOldKey: Ownership = { kind: "ours", isOutdated: true, isAdopted: false, keyId: "old" };

const every: readonly Ownership[] = [
  ours,
  { ...ours, isAdopted: true },
  byOldKey,
  { ...byOldKey, isAdopted: true },
  { kind: "unsealed", reason: "it has no seal" },
  { kind: "foreign", reason: "any", seal: "other-key" },
  { kind: "foreign", reason: "any", seal: "other-region" },
  { kind: "foreign", reason: "any", seal: "broken" },
  { kind: "foreign", reason: "any" },
];

const objectsOf = (ownerships: readonly Ownership[]) =>
  ownerships.map((ownership) => ({ value: { ownership } }));

test("every object is counted by its seal, and every older key is listed", () => {
  const counts = countSeals({ kind: "Service", synced: true, objects: objectsOf(every) }, ["older", "old"]);
  assert.deepEqual(counts, {
    kind: "Service",
    synced: true,
    current: 2,
    older: [
      { keyId: "older", objects: 0 },
      { keyId: "old", objects: 2 },
    ],
    adopted: 2,
    unsealed: 1,
    otherRegion: 1,
    unknownKey: 1,
    foreign: 2,
  });
  const total = sealTotals([counts]).reduce((sum, [, count]) => sum + count, 0);
  assert.equal(total, every.length);
});

test("kinds that krane does not write are left out, and objects that are not watched are counted by kind", () => {
  const kindOf = (kind: string, owned: readonly Ownership[] | undefined): DefinedKind => ({
    required: true,
    synced: true,
    isComplete: true,
    owned: owned && (objectsOf(owned) as unknown as readonly OwnedEntry[]),
    revision: 0,
    initial: 0,
    status: () => ({ kind, objects: 0, synced: true, lastError: "" }),
    run: () => assert.fail("a count reads only"),
    whenSynced: () => assert.fail("a count does not wait"),
    subscribe: () => assert.fail("a count is made when it is asked for"),
  });
  const entry = { kind: secrets, key: "acme/krane-registry", uid: "u", untilMs: 0, readMs: 0 };
  const counts = countAllSeals(
    [kindOf("Pod", undefined), kindOf("apps/ReplicaSet", [ours])],
    [
      { ...entry, value: { ownership: byOldKey } },
      { ...entry, value: { ownership: ours } },
    ],
    ["old"],
  );
  assert.deepEqual(
    counts.map(({ kind, current, older }) => [kind, current, older[0]?.objects]),
    [
      ["apps/ReplicaSet", 1, 0],
      ["Secret", 1, 1],
    ],
  );
});
