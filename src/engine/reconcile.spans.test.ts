import assert from "node:assert/strict";
import { test } from "node:test";
import { createBareReconciler } from "../../test/support/bare-reconciler.ts";
import { createRecordedSpans } from "../../test/support/recorded-spans.ts";
import type { Plan } from "./plan.ts";
import { Reconciler } from "./reconcile.ts";

const never = new AbortController().signal;

test("every reconcile has a span with the version and the outcome", async () => {
  const { spans, seen } = createRecordedSpans();
  const plans: Plan[] = [
    { kind: "unmet", reason: "a reason that names CANARY" },
    { kind: "later", afterMs: 1 },
    { kind: "apply", steps: [] },
    { kind: "nothing" },
  ];
  const left = [...plans];
  const { reconciler, store } = createBareReconciler(() => left.shift() ?? assert.fail("no plan is left"), {
    spans,
  });
  store.receive({ key: "acme/gate", id: "s_1", version: 7n, want: { kind: "apply", spec: "any" } });
  for (const _ of plans) await reconciler.reconcile("acme/gate", never);
  const same = { "krane.controller": "sentinels", "krane.key": "acme/gate", "krane.version": "7" };
  const name = "reconcile sentinels";
  assert.deepEqual(seen, [
    { name, attributes: { ...same, "krane.outcome": "retrying" }, failure: "retrying" },
    { name, attributes: same },
    { name, attributes: { ...same, "krane.outcome": "unchanged" } },
    { name, attributes: same },
  ]);
});

test("without tracing, the reconciler is the plain one", () => {
  const { reconciler } = createBareReconciler(() => ({ kind: "nothing" }));
  assert.equal(Object.getPrototypeOf(reconciler), Reconciler.prototype);
});
