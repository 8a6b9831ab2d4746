import assert from "node:assert/strict";
import { test } from "node:test";
import { createBareReconciler } from "../../test/support/bare-reconciler.ts";
import type { Plan } from "./plan.ts";
import { isInSync } from "./resync.ts";

const never = new AbortController().signal;
const key = "acme/web";
const nothingToDo: Plan = { kind: "apply", steps: [] };

/** A reconciler that has reconciled the key and found it in sync. */
async function settledReconciler(plan: () => Plan = () => nothingToDo) {
  const fixture = createBareReconciler(plan);
  fixture.store.receive({ key, id: "d_1", version: 7n, want: { kind: "apply", spec: "one" } });
  await fixture.reconciler.reconcile(key, never);
  return fixture;
}

test("a key is in sync once a reconcile found nothing to do", async () => {
  const { reconciler, deps, store } = createBareReconciler(() => nothingToDo);
  store.receive({ key, id: "d_1", version: 7n, want: { kind: "apply", spec: "one" } });
  assert.equal(isInSync(key, deps), false);
  await reconciler.reconcile(key, never);
  assert.equal(isInSync(key, deps), true);
  assert.equal(isInSync("acme/other", deps), false);
});

test("a key is out of sync while a newer version or a delete is waiting", async () => {
  const { reconciler, deps, store } = await settledReconciler();
  store.receive({ key, id: "d_1", version: 8n, want: { kind: "apply", spec: "two" } });
  assert.equal(isInSync(key, deps), false);
  await reconciler.reconcile(key, never);
  assert.equal(isInSync(key, deps), true);
  store.receive({ key, id: "d_1", version: 9n, want: { kind: "delete" } });
  assert.equal(isInSync(key, deps), false);
});

test("a key is out of sync while the control plane does not know it", async () => {
  const { deps, guard } = await settledReconciler();
  for (let pass = 0; pass < 2; pass++) {
    guard.suspect(key, "d_1");
    guard.endPass({ managed: 1, present: 0 });
  }
  assert.equal(isInSync(key, deps), false);
  guard.clear(key);
  assert.equal(isInSync(key, deps), true);
});

test("a key is out of sync if its plan has work to do, or cannot be made", async () => {
  let plan = (): Plan => nothingToDo;
  const { deps } = await settledReconciler(() => plan());
  plan = () => ({ kind: "apply", steps: [{ kind: "unmet", reason: "something is missing" }] });
  assert.equal(isInSync(key, deps), false);
  plan = () => ({ kind: "nothing" });
  assert.equal(isInSync(key, deps), false);
  plan = () => assert.fail("a bug");
  assert.equal(isInSync(key, deps), false);
});
