import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createRecordedSpans } from "../../test/support/recorded-spans.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { createKubeApi } from "../kube/client.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/no-tracing.ts";
import { StepsApplier } from "./apply-steps.ts";
import { backoffs } from "./classify.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import { DeletionGuard } from "./deletion-guard.ts";
import { DesiredStore } from "./desired-store.ts";
import { DriftMemory } from "./drift-memory.ts";
import { ObjectStatuses } from "./object-status.ts";
import type { Plan } from "./plan.ts";
import { Reconciler } from "./reconcile.ts";
import { createReconciler } from "./reconcile-spans.ts";
import { SlowLane } from "./slow-lane.ts";
import { VersionCursor } from "./version-cursor.ts";

const never = new AbortController().signal;
const untouched = () => assert.fail("nothing is asked of the cluster");
const deletion = {
  mode: "confirmed",
  confirmations: 2,
  minimumAgeMs: 0,
  budgetObjects: 1,
  budgetFraction: 1,
  budgetWindowMs: 1,
} as const;

/** A reconciler of keys for which the plans are made one after the other. */
function createFixture(plans: readonly Plan[], traced: Traced) {
  const left = [...plans];
  const clock = new FakeClock();
  const deps = { clock, random: createSeededRandom(1), log: createQuietLog() };
  const definition: ControllerDefinition<never, string> = {
    name: "sentinels",
    watchDesired: untouched,
    getDesired: untouched,
    readState: untouched,
    kinds: [],
    managed: () => [],
    managedByKey: () => undefined,
    companionKeys: () => [],
    plan: () => left.shift() ?? assert.fail("no plan is left"),
    targets: () => [],
    observe: () => undefined,
    readiness: () => ({ ready: 0, total: 0 }),
    failing: () => new Map(),
  };
  const api = createKubeApi({ send: untouched, stream: untouched, close: async () => undefined });
  const lane = new SlowLane(backoffs.slow, deps);
  const store = new DesiredStore<string>(clock);
  const reconciler = createReconciler({
    ...deps,
    ...traced,
    definition,
    store,
    cursor: new VersionCursor(),
    guard: new DeletionGuard(deletion, clock),
    statuses: new ObjectStatuses(clock, () => undefined),
    applier: new StepsApplier({ api, clock, drift: new DriftMemory(clock), lane }),
    lane,
    api,
    metrics: createMetrics({ version: "1", revision: "r", nodeVersion: process.version }),
    enqueue: () => undefined,
    report: () => undefined,
  });
  return { reconciler, store };
}

test("each look at a key has a span with the version that it was for and what came of it", async () => {
  const { spans, seen } = createRecordedSpans();
  const plans: Plan[] = [
    { kind: "hold", reason: "a reason that names CANARY" },
    { kind: "later", afterMs: 1 },
    { kind: "apply", steps: [] },
    { kind: "nothing" },
  ];
  const { reconciler, store } = createFixture(plans, { spans });
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

test("without tracing the reconciler is the plain one", () => {
  const { reconciler } = createFixture([], {});
  assert.equal(Object.getPrototypeOf(reconciler), Reconciler.prototype);
});
