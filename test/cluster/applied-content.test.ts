// Drift is seen by what a real API server records about who owns which field.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { checkContentOf, checkEditsOf, goldenManifests } from "../support/applied-content-trial.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";

const cluster = clusterUnderTest();
const { transport, close } = realServerTarget(cluster);
const signal = AbortSignal.timeout(120_000);

after(() => close());

test("what the server stored of every golden manifest has the hash of what was sent", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  for (const golden of goldenManifests(namespace)) await checkContentOf(transport, golden, signal);
});

test("every field that krane sends is missed when it is edited by hand, and one apply brings it back", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  for (const golden of goldenManifests(namespace).filter(({ name }) => / of everything$/.test(name))) {
    const accepted = await checkEditsOf(transport, golden, signal);
    assert.ok(accepted >= 10, `${golden.name}: only ${accepted} edits were accepted`);
  }
});
