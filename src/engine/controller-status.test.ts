import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import { countObjects, listObjects } from "./controller-status.ts";
import { DesiredStore } from "./desired-store.ts";
import { ObjectStatuses } from "./object-status.ts";

const untouched = () => assert.fail("a count makes no calls");

interface Whereabouts {
  readonly wanted?: readonly string[];
  readonly inCluster?: readonly string[];
  readonly remembered?: readonly string[];
}

function knownObjects({ wanted = [], inCluster = [], remembered = [] }: Whereabouts) {
  const clock = new FakeClock();
  const store = new DesiredStore<string>(clock);
  for (const key of wanted)
    store.receive({ key, id: key, version: 1n, want: { kind: "apply", spec: "any" } });
  const statuses = new ObjectStatuses(clock, () => undefined);
  for (const key of remembered) statuses.record(key, { outcome: "unchanged" });
  const managedByKey = (key: string) => (inCluster.includes(key) ? { key, id: key } : undefined);
  const definition: ControllerDefinition<string> = {
    watchedKinds: [],
    managed: () => inCluster.map((key) => ({ key, id: key })),
    managedByKey,
    companionKeys: untouched,
    plan: untouched,
    targets: untouched,
    observe: untouched,
    readiness: () => ({ ready: 0, total: 0 }),
    failing: () => new Map(),
  };
  return { controller: "deployments", definition, store, statuses };
}

const cases: readonly (Whereabouts & { readonly name: string; readonly count: number })[] = [
  { name: "nothing is known", count: 0 },
  { name: "wanted only", wanted: ["a", "b"], count: 2 },
  { name: "in the cluster only", inCluster: ["a", "b"], count: 2 },
  { name: "remembered only", remembered: ["a", "b"], count: 2 },
  { name: "wanted and in the cluster", wanted: ["a"], inCluster: ["a"], count: 1 },
  { name: "wanted and remembered", wanted: ["a"], remembered: ["a"], count: 1 },
  { name: "in the cluster and remembered", inCluster: ["a"], remembered: ["a"], count: 1 },
  { name: "all three at once", wanted: ["a"], inCluster: ["a"], remembered: ["a"], count: 1 },
  { name: "one of each kind", wanted: ["a", "d"], inCluster: ["b", "d"], remembered: ["c", "d"], count: 4 },
];

for (const { name, count, ...whereabouts } of cases)
  test(`an object is counted once, wherever it is known from: ${name}`, () => {
    const known = knownObjects(whereabouts);
    assert.equal(countObjects(known), count);
    assert.equal(listObjects(known, {}).length, count);
  });

test("with refusedFirst, rejected objects come first on the page", () => {
  const known = knownObjects({ remembered: ["a", "d"] });
  for (const key of ["b", "c"]) known.statuses.record(key, { outcome: "retrying" });
  known.statuses.record("y", { outcome: "conflict" });
  known.statuses.record("z", { outcome: "parked" });
  const keys = (refusedFirst: boolean) =>
    listObjects(known, { onlyTroubled: true, refusedFirst, limit: 3 }).map(({ key }) => key);
  assert.deepEqual(keys(true), ["y", "z", "b"]);
  assert.deepEqual(keys(false), ["b", "c", "y"]);
});
