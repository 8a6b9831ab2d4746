// A reconciler without a cluster: what it plans is what a test says.

import assert from "node:assert/strict";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { StepsApplier } from "../../src/engine/apply-steps.ts";
import { backoffs } from "../../src/engine/classify.ts";
import { Contests } from "../../src/engine/contests.ts";
import type { ControllerDefinition } from "../../src/engine/controller-definition.ts";
import { DeletionGuard } from "../../src/engine/deletion-guard.ts";
import { DesiredStore } from "../../src/engine/desired-store.ts";
import { DriftMemory } from "../../src/engine/drift-memory.ts";
import { KeyPace } from "../../src/engine/key-pace.ts";
import { ObjectStatuses } from "../../src/engine/object-status.ts";
import type { Plan } from "../../src/engine/plan.ts";
import { createReconciler } from "../../src/engine/reconcile-spans.ts";
import { SlowLane } from "../../src/engine/slow-lane.ts";
import { VersionCursor } from "../../src/engine/version-cursor.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { Traced } from "../../src/telemetry/spans.ts";
import { createActionRecords } from "./action-records.ts";
import { FakeClock } from "./fake-clock.ts";
import { createQuietLog } from "./quiet-log.ts";
import { testSeal } from "./test-seal.ts";

const untouched = () => assert.fail("nothing is asked of the cluster");
const deletion = {
  mode: "confirmed",
  confirmations: 2,
  minimumAgeMs: 0,
  budgetObjects: 1,
  budgetFraction: 1,
  budgetWindowMs: 1,
} as const;

export function createBareReconciler(plan: () => Plan, traced: Traced = {}) {
  const clock = new FakeClock();
  const deps = { clock, random: createSeededRandom(1), log: createQuietLog() };
  const definition: ControllerDefinition<string> = {
    watchedKinds: [],
    managed: () => [],
    managedByKey: () => undefined,
    companionKeys: () => [],
    plan,
    targets: () => [],
    observe: () => undefined,
    readiness: () => ({ ready: 0, total: 0 }),
    failing: () => new Map(),
  };
  const api = createKubeApi({ send: untouched, stream: untouched, close: async () => undefined });
  const actions = createActionRecords(api);
  const lane = new SlowLane(backoffs.slow, deps);
  const contests = new Contests({ ...deps, controller: "sentinels", api });
  const store = new DesiredStore<string>(clock);
  const guard = new DeletionGuard(deletion, clock);
  const reconcileDeps = {
    ...deps,
    controller: "sentinels",
    definition,
    store,
    cursor: new VersionCursor(),
    guard,
    statuses: new ObjectStatuses(clock, () => undefined),
    applier: new StepsApplier({
      api,
      clock,
      drift: new DriftMemory(),
      lane,
      seal: testSeal,
      actions,
      contests,
    }),
    actions,
    lane,
    keyPace: new KeyPace(clock),
    contests,
    api,
    metrics: createMetrics({ version: "1", revision: "r", nodeVersion: process.version }),
    enqueue: () => undefined,
    report: () => undefined,
  };
  return { reconciler: createReconciler({ ...reconcileDeps, ...traced }), deps: reconcileDeps, store, guard };
}
