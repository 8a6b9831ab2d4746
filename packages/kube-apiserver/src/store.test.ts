import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Change, ExpiredError, type ObjectKey, ObjectStore, type StoredObject } from "./store.ts";

const resource = { group: "", plural: "things" };

function keyOf(namespace: string, name: string): ObjectKey {
  return { ...resource, namespace, name };
}

function objectOf(namespace: string, name: string, value = 0): StoredObject {
  return { apiVersion: "v1", kind: "Thing", metadata: { namespace, name }, value };
}

function put(store: ObjectStore, namespace: string, name: string, value = 0): StoredObject {
  return store.put(keyOf(namespace, name), objectOf(namespace, name, value));
}

test("every change increments the revision", () => {
  const store = new ObjectStore();
  assert.equal(put(store, "a", "x").metadata["resourceVersion"], "1");
  assert.equal(put(store, "a", "x", 1).metadata["resourceVersion"], "2");
  assert.equal(store.remove(keyOf("a", "x"))?.metadata["resourceVersion"], "3");
  assert.equal(store.remove(keyOf("a", "x")), undefined);
  assert.equal(store.revision, 3);
});

test("lists are sorted by namespace and name", () => {
  const store = new ObjectStore();
  for (const [namespace, name] of [
    ["b", "x"],
    ["a", "z"],
    ["a-b", "y"],
    ["a", "y"],
  ] as const) {
    put(store, namespace, name);
  }
  const names = store.list(resource).map(({ metadata }) => `${metadata["namespace"]}/${metadata["name"]}`);
  assert.deepEqual(names, ["a-b/y", "a/y", "a/z", "b/x"]);
  assert.equal(store.list(resource, "a").length, 2);
});

test("a past state equals the list at that time", () => {
  const step = fc.record({
    name: fc.constantFrom("a", "b", "c"),
    namespace: fc.constantFrom("m", "n"),
    removes: fc.boolean(),
    value: fc.nat(9),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const store = new ObjectStore();
      const seen = new Map([[0, store.list(resource)]]);
      for (const { namespace, name, removes, value } of steps) {
        if (removes) store.remove(keyOf(namespace, name));
        else put(store, namespace, name, value);
        seen.set(store.revision, store.list(resource));
      }
      for (const [revision, objects] of seen) assert.deepEqual(store.listAt(resource, "", revision), objects);
    }),
  );
});

test("changes after a revision are in order, and expire after compaction", () => {
  const store = new ObjectStore();
  for (const name of ["a", "b", "c"]) put(store, "n", name);
  assert.deepEqual(
    store.changesAfter(1).map(({ revision }) => revision),
    [2, 3],
  );
  store.compact(2);
  assert.deepEqual(
    store.changesAfter(2).map(({ revision }) => revision),
    [3],
  );
  assert.throws(() => store.changesAfter(1), ExpiredError);
  assert.throws(() => store.listAt(resource, "", 1), ExpiredError);
});

test("the log never exceeds twice its limit", () => {
  const store = new ObjectStore({ changesMax: 10 });
  for (let round = 0; round < 100; round++) put(store, "n", "a", round);
  assert.throws(() => store.changesAfter(store.revision - 21), ExpiredError);
  assert.equal(store.changesAfter(store.revision - 10).length, 10);
});

test("a listener is called for changes until it unsubscribes", () => {
  const store = new ObjectStore();
  const heard: Change[] = [];
  const stop = store.subscribe((change) => heard.push(change));
  put(store, "n", "a");
  put(store, "n", "a", 1);
  store.remove(keyOf("n", "a"));
  stop();
  put(store, "n", "a");
  assert.deepEqual(
    heard.map(({ revision, removed, previous }) => ({
      revision,
      removed,
      hadBefore: previous !== undefined,
    })),
    [
      { revision: 1, removed: false, hadBefore: false },
      { revision: 2, removed: false, hadBefore: true },
      { revision: 3, removed: true, hadBefore: true },
    ],
  );
});
