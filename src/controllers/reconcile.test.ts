import assert from "node:assert/strict";
import { test } from "node:test";
import { createBareReconciler } from "../../test/support/bare-reconciler.ts";
import type { Plan } from "./plan.ts";

const never = new AbortController().signal;
const key = "acme/web";
const nothingToDo: Plan = { kind: "apply", steps: [] };

/** A reconciler that has looked at the key and found it as it is wanted. */
async function settledReconciler(plan: () => Plan = () => nothingToDo) {
  const fixture = createBareReconciler(plan);
  fixture.store.receive({ key, id: "d_1", version: 7n, want: { kind: "apply", spec: "one" } });
  await fixture.reconciler.reconcile(key, never);
  return fixture;
}

test("a key is in order once a look has found nothing to do", async () => {
  const { reconciler, store } = createBareReconciler(() => nothingToDo);
  store.receive({ key, id: "d_1", version: 7n, want: { kind: "apply", spec: "one" } });
  assert.equal(reconciler.isInOrder(key), false);
  await reconciler.reconcile(key, never);
  assert.equal(reconciler.isInOrder(key), true);
  assert.equal(reconciler.isInOrder("acme/other"), false);
});

test("it is not while another version is wanted than was looked at, or its end", async () => {
  const { reconciler, store } = await settledReconciler();
  store.receive({ key, id: "d_1", version: 8n, want: { kind: "apply", spec: "two" } });
  assert.equal(reconciler.isInOrder(key), false);
  await reconciler.reconcile(key, never);
  assert.equal(reconciler.isInOrder(key), true);
  store.receive({ key, id: "d_1", version: 9n, want: { kind: "delete" } });
  assert.equal(reconciler.isInOrder(key), false);
});

test("it is not while the control plane does not know it", async () => {
  const { reconciler, guard } = await settledReconciler();
  for (let pass = 0; pass < 2; pass++) {
    guard.suspect(key, "d_1");
    guard.endPass({ managed: 1, present: 0 });
  }
  assert.equal(reconciler.isInOrder(key), false);
  guard.clear(key);
  assert.equal(reconciler.isInOrder(key), true);
});

test("it is not where there is something to do, or where that cannot be told", async () => {
  let plan = (): Plan => nothingToDo;
  const { reconciler } = await settledReconciler(() => plan());
  plan = () => ({ kind: "apply", steps: [{ kind: "hold", reason: "something is missing" }] });
  assert.equal(reconciler.isInOrder(key), false);
  plan = () => ({ kind: "nothing" });
  assert.equal(reconciler.isInOrder(key), false);
  plan = () => assert.fail("a bug");
  assert.equal(reconciler.isInOrder(key), false);
});
