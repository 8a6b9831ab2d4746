import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { type WorkOutcome, type WorkPriority, WorkQueue } from "./work-queue.ts";

const done: WorkOutcome = { kind: "done" };
const slowMs = 2_000;

/** A running queue whose keys are grouped by their first letter, and whose handlers end when the test says so. */
function setUp(workers: number) {
  const clock = new FakeClock();
  const started: string[] = [];
  const slow: string[] = [];
  const inFlight = new Map<string, (outcome: WorkOutcome) => void>();
  const queue = new WorkQueue(
    { backoff: { initialMs: 100, maxMs: 1_000, jitter: "equal" }, groupOf: ([group = ""]) => group, slowMs },
    {
      clock,
      random: { next: () => 1 },
      onHandlerError: (_, error) => assert.fail(String(error)),
      onSlowGroup: (group) => slow.push(group),
    },
  );
  const stop = new AbortController();
  const running = queue.run(
    workers,
    (key) => {
      assert.ok(!inFlight.has(key), `two workers on ${key}`);
      assert.ok(inFlight.size < workers, "more handlers than workers");
      started.push(key);
      return new Promise((end) => inFlight.set(key, end));
    },
    stop.signal,
  );
  const add = async (keys: Iterable<string>, priority?: WorkPriority) => {
    for (const key of keys) queue.add(key, priority);
    await clock.settle();
  };
  const finish = async (key: string, outcome = done) => {
    const end = inFlight.get(key);
    assert.ok(end, `${key} is in flight`);
    inFlight.delete(key);
    end(outcome);
    await clock.settle();
  };
  const count = (group: string) => [...inFlight.keys()].filter((key) => key.startsWith(group)).length;
  const finishAll = async (group: string) => {
    for (const key of [...inFlight.keys()]) if (key.startsWith(group)) await finish(key);
  };
  return { clock, queue, started, slow, inFlight, add, finish, finishAll, count, stop, running };
}

function* keysOf(group: string, count: number) {
  for (let index = 0; index < count; index++) yield `${group}${index}`;
}

test("groups take turns, and within a group the first to come is the first to start", async () => {
  const { started, add, finish } = setUp(1);
  await add(["a0", "a1", "a2", "b0", "b1", "c0"]);
  for (let nth = 0; nth < 5; nth++) await finish(started.at(-1) ?? "");
  assert.deepEqual(started, ["a0", "b0", "c0", "a1", "b1", "a2"]);
});

test("a group of which nothing is known gets a quarter of the workers", async () => {
  const { add, count } = setUp(64);
  await add(keysOf("a", 500));
  assert.equal(count("a"), 16);
  await add(["b0", "c0"]);
  assert.deepEqual([count("b"), count("c")], [1, 1]);
});

test("a fast group on its own gets all workers but the reserve", async () => {
  const { add, count, finish, inFlight } = setUp(64);
  await add(keysOf("a", 500));
  for (let nth = 0; nth < 100; nth++) await finish([...inFlight.keys()][0] ?? "");
  assert.equal(count("a"), 56);
  await add([...keysOf("b", 8), ...keysOf("c", 3)]);
  assert.deepEqual([count("b"), count("c")], [1, 1], "one of each other group starts at once");
  await finish("b0");
  assert.equal(count("b"), 1);
});

test("a fast group that turns slow keeps only its share, and gets more once it was fast for a while", async () => {
  const { clock, add, count, finish, finishAll, inFlight, slow } = setUp(64);
  await add(keysOf("a", 5_000));
  for (let nth = 0; nth < 100; nth++) await finish([...inFlight.keys()][0] ?? "");
  assert.equal(count("a"), 56);
  await clock.advance(slowMs);
  await finishAll("a");
  assert.deepEqual([count("a"), slow], [16, ["a"]]);
  await finishAll("a");
  assert.equal(count("a"), 16, "items that end at once prove nothing yet");
  for (let second = 0; second < 29; second++) {
    await clock.advance(1_000);
    await finishAll("a");
  }
  assert.equal(count("a"), 16);
  for (let second = 0; second < 10; second++) {
    await clock.advance(1_000);
    await finishAll("a");
  }
  assert.equal(count("a"), 56);
  assert.deepEqual(slow, ["a"]);
});

test("handlers that hang make their group slow before they end", async () => {
  const { clock, add, count, finish } = setUp(64);
  await add(keysOf("a", 10));
  for (const key of keysOf("a", 9)) await finish(key);
  await add(keysOf("b", 500));
  await clock.advance(slowMs);
  await add(["a10"]);
  // Would be allowed to use more than its share if it were fast.
  for (let nth = 0; nth < 40; nth++) await add([`b${500 + nth}`]);
  assert.equal(count("b"), 16);
});

test("slow groups together leave half of the workers, and none of them starves", async () => {
  const { clock, add, count, finishAll, inFlight, started } = setUp(64);
  const groups = [..."abcdefgh"];
  for (const group of groups) await add(keysOf(group, 50));
  for (let round = 0; round < 3; round++) {
    await clock.advance(slowMs);
    for (const group of groups) await finishAll(group);
  }
  assert.equal(inFlight.size, 32);
  await add(keysOf("x", 100));
  assert.equal(count("x"), 16);
  for (const group of groups)
    assert.ok(
      started.some((key) => key.startsWith(group)),
      `${group} was started`,
    );
});

test("fast groups with endless work do not keep a slow one waiting", async () => {
  const { clock, add, count, finish, inFlight } = setUp(8);
  await add(["s0"]);
  await clock.advance(slowMs);
  await finish("s0");
  for (const group of "abcdefgh") await add(keysOf(group, 100));
  assert.equal(inFlight.size, 8);
  await add(["s1"]);
  assert.equal(count("s"), 0);
  await finish([...inFlight.keys()][0] ?? "");
  assert.equal(count("s"), 1);
});

test("whatever comes and ends, no key is lost, and a slow group never starts beyond its share", async () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant("add" as const),
      key: fc.tuple(fc.constantFrom("a", "b", "c"), fc.nat(9)).map(([group, nth]) => `${group}${nth}`),
      priority: fc.constantFrom<WorkPriority>("fresh", "resync"),
    }),
    fc.record({
      kind: fc.constant("finish" as const),
      index: fc.nat(7),
      outcome: fc.constantFrom<WorkOutcome>(done, { kind: "retry" }, { kind: "again", afterMs: 50 }),
    }),
    fc.record({ kind: fc.constant("advance" as const), byMs: fc.constantFrom(10, 500, slowMs) }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      fc.array(step, { maxLength: 80 }),
      async (workers, steps) => {
        const { clock, queue, inFlight, started, add, finish, count, slow, stop, running } = setUp(workers);
        const share = Math.max(1, Math.floor(workers / 4));
        const added = new Map<string, number>();
        for (const one of steps) {
          const startedBefore = started.length;
          const slowBefore = new Set(slow);
          const before = new Map([..."abc"].map((group) => [group, count(group)]));
          if (one.kind === "add") {
            added.set(one.key, started.length);
            await add([one.key], one.priority);
          } else if (one.kind === "advance") await clock.advance(one.byMs);
          else {
            const key = [...inFlight.keys()][one.index % Math.max(1, inFlight.size)];
            if (key !== undefined) await finish(key, one.outcome);
          }
          if (one.kind === "add" || one.kind === "advance") continue;
          for (const key of started.slice(startedBefore)) {
            const [group = ""] = key;
            const isKnownSlow = slowBefore.has(group) && clock.nowMs() < 30_000;
            if (isKnownSlow) assert.ok(count(group) <= Math.max(share, before.get(group) ?? 0), key);
          }
        }
        for (let round = 0; round < 500 && (inFlight.size > 0 || queue.counts.delayed > 0); round++) {
          const [key] = inFlight.keys();
          if (key !== undefined) await finish(key);
          else await clock.advance(1_000);
        }
        const { waiting, delayed } = queue.counts;
        assert.deepEqual({ ...waiting, delayed }, { fresh: 0, resync: 0, delayed: 0 });
        for (const [key, at] of added) assert.ok(started.lastIndexOf(key) >= at, key);
        stop.abort();
        await running;
      },
    ),
    { numRuns: 200 },
  );
});
