import assert from "node:assert/strict";
import { test } from "node:test";
import type { CacheChange, CacheEntry } from "../../kube/object-cache.ts";
import type { ReplicaSetProjection } from "./projections.ts";
import { type ReplicaSets, replicaSetKeys } from "./watched-kinds.ts";

function entry(version: string, value: Partial<ReplicaSetProjection> = {}): CacheEntry<ReplicaSetProjection> {
  const namespace = "acme";
  return {
    ...{ key: "acme/web", uid: "u", resourceVersion: version, hash: version },
    value: { namespace, name: "web", environmentId: "env_1", port: 8080, ...value } as ReplicaSetProjection,
  };
}

const changedBy = (before: Partial<ReplicaSetProjection>, after: Partial<ReplicaSetProjection>) => {
  const change = { kind: "changed", key: "acme/web", before: entry("1", before), after: entry("2", after) };
  return change as CacheChange<ReplicaSetProjection>;
};
const added = { kind: "added", key: "acme/web", after: entry("1") } as const;
const deleted = { kind: "deleted", key: "acme/web", before: entry("1") } as const;

/** What is reconciled after a change that is not known to be krane's own write. */
function keysAfter(change: CacheChange<ReplicaSetProjection>, { admits = true, wanted = 8080 } = {}) {
  const sets = { isOwnWrite: () => false } as unknown as ReplicaSets;
  const isWanted = (_: string, { port }: ReplicaSetProjection) => port === wanted;
  return replicaSetKeys(sets, change, { admits: () => admits, isWanted }).reconcile;
}

test("a ReplicaSet that desired state counts for the policy does not bring the policy up", () => {
  assert.deepEqual(keysAfter(added), ["acme/web"]);
  assert.deepEqual(keysAfter(changedBy({}, {})), ["acme/web"]);
});

test("the policy comes up when what it has to admit may have changed", () => {
  const both = ["acme/web", "policy:acme/env_1"];
  assert.deepEqual(keysAfter(added, { admits: false }), both);
  assert.deepEqual(keysAfter(added, { wanted: 9000 }), both);
  assert.deepEqual(keysAfter(deleted), both);
  assert.deepEqual(keysAfter(changedBy({ port: 9000 }, {})), both);
  assert.deepEqual(keysAfter(changedBy({ environmentId: "env_2" }, {})), [
    "acme/web",
    "policy:acme/env_2",
    "policy:acme/env_1",
  ]);
});
