import assert from "node:assert/strict";
import { test } from "node:test";
import { createActionRecords } from "../../test/support/action-records.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { oursSealed, testSeal } from "../../test/support/test-seal.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import type { ApplyOptions, KubeApi } from "../kube/api.ts";
import { createKubeApi } from "../kube/client.ts";
import { replicaSets } from "../kube/resources.ts";
import { createProgress, StepsApplier } from "./apply-steps.ts";
import { backoffs } from "./classify.ts";
import { Contests } from "./contests.ts";
import { DriftMemory } from "./drift-memory.ts";
import type { LiveEntry, OwnedObject, PlanStep } from "./plan.ts";
import { SlowLane } from "./slow-lane.ts";

const never = new AbortController().signal;
const untouched = () => assert.fail("the cluster must not be called");
const ref = { namespace: "acme", name: "web" };
const asWanted: LiveEntry = {
  uid: "u_1",
  contentHash: "wanted",
  ownership: oursSealed,
  deleting: false,
  createdAt: undefined,
  manifestHash: undefined,
};

function applierOf(calls: Partial<KubeApi> = {}, clock = new FakeClock()): StepsApplier {
  const unreachable = createKubeApi({ send: untouched, stream: untouched, close: async () => undefined });
  const lane = new SlowLane(backoffs.slow, { clock, random: createSeededRandom(1) });
  const api = { ...unreachable, ...calls };
  const actions = createActionRecords(api);
  const contests = new Contests({ controller: "test", api, clock, log: createQuietLog() });
  return new StepsApplier({ api, clock, drift: new DriftMemory(), lane, seal: testSeal, actions, contests });
}

/** `stored`: what the server stores for it. */
function objectStep(
  live: LiveEntry | undefined,
  { contentHash = "wanted", stored = "wanted" } = {},
): Extract<PlanStep, { kind: "object" }> {
  const object: OwnedObject = {
    kind: replicaSets,
    ref,
    contentHash,
    refusesStrangers: false,
    ids: () => ({}),
    manifest: () => ({ metadata: ref }),
    live: () => live,
    adoptee: untouched,
    entryOf: untouched,
    keep: untouched,
    wrote: () => ({ ...asWanted, contentHash: stored }),
    gone: untouched,
    hashOf: () => stored,
    driftOf: () => [],
    addedTo: () => [],
    weaknessOf: () => "",
    replicasHeld: () => 0,
  };
  return { kind: "object", object };
}

const checked: PlanStep = {
  kind: "checked",
  object: {
    kind: replicaSets,
    ref,
    manifest: untouched,
    isCurrent: () => true,
    judge: () => oursSealed,
    ids: () => ({}),
  },
};
const awaited = (isReady: boolean): PlanStep => ({
  kind: "await",
  key: "policy",
  isReady,
  isCertain: true,
  confirm: async () => isReady,
});
const eachOf = (...steps: readonly PlanStep[]): PlanStep => ({ kind: "each", steps: () => steps });
const foreign = { kind: "foreign", reason: "a label is absent" } as const;
const otherId = { kind: "other-id", reason: "the live id is another one" } as const;

const cases: readonly { readonly name: string; readonly step: PlanStep; readonly isDone: boolean }[] = [
  { name: "a namespace that was never seen", step: { kind: "namespace", name: "acme" }, isDone: false },
  { name: "a key that is ready", step: awaited(true), isDone: true },
  { name: "a key that is not ready", step: awaited(false), isDone: false },
  { name: "an object in sync", step: objectStep(asWanted), isDone: true },
  { name: "an object that is absent", step: objectStep(undefined), isDone: false },
  {
    name: "an object that is being deleted",
    step: objectStep({ ...asWanted, deleting: true }),
    isDone: false,
  },
  {
    name: "an object that is not krane's",
    step: objectStep({ ...asWanted, ownership: foreign }),
    isDone: false,
  },
  { name: "an object of another id", step: objectStep({ ...asWanted, ownership: otherId }), isDone: false },
  {
    name: "an object with other content",
    step: objectStep({ ...asWanted, contentHash: "edited" }),
    isDone: false,
  },
  { name: "an object that has to be checked first", step: checked, isDone: false },
  { name: "independent objects in sync", step: eachOf(objectStep(asWanted)), isDone: true },
  {
    name: "independent objects, one of them unchecked",
    step: eachOf(objectStep(asWanted), checked),
    isDone: false,
  },
  {
    name: "an unmet precondition",
    step: { kind: "unmet", reason: "no such kind" },
    isDone: false,
  },
  { name: "a flaw", step: { kind: "flawed", reason: "it is headless" }, isDone: false },
];

for (const { name, step, isDone } of cases)
  test(`${isDone ? "nothing" : "something"} is left to do: ${name}`, () => {
    const applier = applierOf();
    assert.equal(applier.isDone([step]), isDone);
    assert.equal(applier.isDone([objectStep(asWanted), step]), isDone);
    assert.equal(applier.isDone([step, objectStep(asWanted)]), isDone);
  });

test("a live object proves its own namespace, and no other", async () => {
  const applier = applierOf();
  const steps: readonly PlanStep[] = [{ kind: "namespace", name: "acme" }, objectStep(asWanted)];
  assert.equal(applier.isDone(steps), false);
  assert.deepEqual(await applier.apply(steps, createProgress("acme/web"), never), {
    kind: "applied",
    writes: 0,
  });
  assert.equal(applier.isDone(steps), true);
  assert.equal(applier.isDone([{ kind: "namespace", name: "other" }]), false);
});

test("a checked object is done until its last check expires", async () => {
  const clock = new FakeClock();
  const applier = applierOf({ get: async () => ({ metadata: ref }) as never }, clock);
  assert.deepEqual(await applier.apply([checked], createProgress("acme/web"), never), {
    kind: "applied",
    writes: 0,
  });
  assert.equal(applier.isDone([checked]), true);
  await clock.advance(600_000);
  assert.equal(applier.isDone([checked]), false);
});

test("an apply uses force only on krane's own objects, and asks for no warnings", async () => {
  const asked: ApplyOptions[] = [];
  const applier = applierOf({
    get: async () => undefined,
    apply: async (_, manifest, options) => {
      asked.push(options);
      const metadata = { ...manifest.metadata, uid: manifest.metadata?.uid ?? "new" };
      return { kind: "applied", object: { ...manifest, metadata } };
    },
  });
  await applier.apply(
    [objectStep({ ...asWanted, contentHash: "edited" })],
    createProgress("acme/web"),
    never,
  );
  await applier.apply([objectStep(undefined)], createProgress("acme/web"), never);
  const always = { fieldManager: "krane", fieldValidation: "Ignore" };
  assert.deepEqual(asked, [
    { ...always, force: true },
    { ...always, force: false },
  ]);
});

test("content that the server stored for the same manifest is in sync, other content is not", async () => {
  const edited: LiveEntry = { ...asWanted, contentHash: "edited" };
  const stored: LiveEntry = { ...asWanted, contentHash: "stored" };
  const applier = applierOf({
    get: async () => undefined,
    apply: async (_, manifest) => ({ kind: "applied", object: manifest }),
  });
  assert.equal(applier.isDone([objectStep(stored)]), false);
  const written = await applier.apply(
    [objectStep(edited, { stored: "stored" })],
    createProgress("acme/web"),
    never,
  );
  assert.deepEqual(written, { kind: "applied", writes: 1 });
  assert.equal(applier.isDone([objectStep(stored)]), true);
  assert.equal(applier.isDone([objectStep(edited)]), false);
  assert.equal(applier.isDone([objectStep({ ...stored, deleting: true })]), false);
  assert.equal(applier.isDone([objectStep({ ...stored, ownership: foreign })]), false);
  assert.equal(applier.isDone([objectStep(stored, { contentHash: "wanted next" })]), false);
});
