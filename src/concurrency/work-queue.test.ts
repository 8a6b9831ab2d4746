import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { type WorkHandler, type WorkOutcome, WorkQueue, type WorkQueueOptions } from "./work-queue.ts";

const done: WorkOutcome = { kind: "done" };
const retry: WorkOutcome = { kind: "retry" };
const empty = { waiting: { fresh: 0, resync: 0 }, delayed: 0, inFlight: 0, oldestWaitingMs: 0 };

/** A queue whose handlers wait until the test says how each one ends. */
function setUp(options: Partial<WorkQueueOptions> = {}) {
  const clock = new FakeClock();
  const controller = new AbortController();
  const started: string[] = [];
  const errors: unknown[] = [];
  const inFlight = new Map<string, { end(outcome: WorkOutcome): void; fail(error: unknown): void }>();
  const queue = new WorkQueue(
    { backoff: { initialMs: 100, maxMs: 1_000, jitter: "equal" }, ...options },
    // Always the longest back-off, so that the times below are exact.
    { clock, random: { next: () => 1 }, onHandlerError: (key, error) => errors.push([key, error]) },
  );
  const handler: WorkHandler<string> = (key) => {
    assert.ok(!inFlight.has(key), "two workers on one key");
    started.push(key);
    return new Promise((end, fail) => inFlight.set(key, { end, fail }));
  };
  const finish = async (key: string, outcome: WorkOutcome | Error) => {
    const work = inFlight.get(key);
    assert.ok(work, `${key} is in flight`);
    inFlight.delete(key);
    if (outcome instanceof Error) work.fail(outcome);
    else work.end(outcome);
    await clock.settle();
  };
  const run = (workers: number) => queue.run(workers, handler, controller.signal);
  return { clock, controller, signal: controller.signal, queue, started, errors, finish, run };
}

test("keys are handled in the order of arrival, no more at a time than there are workers", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(2);
  for (const key of ["a", "b", "c"]) queue.add(key);
  await clock.settle();
  assert.deepEqual(started, ["a", "b"]);
  await finish("b", done);
  assert.deepEqual(started, ["a", "b", "c"]);
  await finish("a", done);
  await finish("c", done);
  assert.deepEqual(queue.counts, empty);
});

test("keys added before the run are kept for it", async () => {
  const { clock, queue, started, run } = setUp();
  queue.add("a");
  await clock.settle();
  assert.deepEqual(started, []);
  void run(1);
  await clock.settle();
  assert.deepEqual(started, ["a"]);
});

test("a key that is added often while it waits is handled once", async () => {
  const { clock, queue, started, finish, run } = setUp();
  for (let event = 0; event < 1_000; event++) queue.add("a");
  void run(4);
  await clock.settle();
  await finish("a", done);
  assert.deepEqual(started, ["a"]);
});

test("a key that is added while in flight is handled exactly once afterwards, never concurrently", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(4);
  queue.add("a");
  await clock.settle();
  for (let event = 0; event < 3; event++) queue.add("a", event === 1 ? "fresh" : "resync");
  await clock.settle();
  assert.deepEqual(started, ["a"]);
  await finish("a", done);
  assert.deepEqual(started, ["a", "a"]);
  await finish("a", done);
  assert.deepEqual(started, ["a", "a"]);
  assert.deepEqual(queue.counts, empty);
});

test("a fresh key goes before resync keys, and a waiting resync key is moved up when it changes", async () => {
  const { clock, queue, started, finish, run } = setUp();
  for (const key of ["r1", "r2", "r3"]) queue.add(key, "resync");
  queue.add("f1");
  queue.add("r3");
  queue.add("f1", "resync");
  assert.deepEqual(queue.counts.waiting, { fresh: 2, resync: 2 });
  void run(1);
  await clock.settle();
  for (const key of ["f1", "r3", "r1"]) await finish(key, done);
  assert.deepEqual(started, ["f1", "r3", "r1", "r2"]);
});

test("a resync key is handled after a burst of fresh ones, however many keep coming", async () => {
  const { clock, queue, started, finish, run } = setUp({ freshBurst: 3 });
  queue.add("r1", "resync");
  queue.add("r2", "resync");
  for (let change = 0; change < 3; change++) queue.add(`f${change}`);
  void run(1);
  await clock.settle();
  for (let change = 3; change < 12; change++) {
    queue.add(`f${change}`);
    await finish(started.at(-1) ?? "", done);
  }
  assert.deepEqual(started, ["f0", "f1", "f2", "r1", "f3", "f4", "f5", "r2", "f6", "f7"]);
});

test("a failing key backs off while others continue, and a success resets it", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.add("bad");
  const waitsMs: number[] = [];
  await clock.settle();
  for (let attempt = 1; attempt <= 6; attempt++) {
    await finish("bad", retry);
    const failedMs = clock.nowMs();
    queue.add("good");
    await clock.settle();
    assert.equal(started.at(-1), "good");
    await finish("good", done);
    while (started.at(-1) !== "bad") await clock.advance(50);
    waitsMs.push(clock.nowMs() - failedMs);
  }
  assert.deepEqual(waitsMs, [100, 200, 400, 800, 1_000, 1_000]);
  await finish("bad", done);
  queue.add("bad");
  await clock.settle();
  await finish("bad", retry);
  await clock.advance(100);
  assert.equal(started.at(-1), "bad");
});

test("a server's hint and an outcome's own back-off extend the wait", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.add("a");
  await clock.settle();
  await finish("a", { kind: "retry", atLeastMs: 5_000 });
  await clock.advance(4_999);
  assert.equal(started.length, 1);
  await clock.advance(1);
  assert.equal(started.length, 2);
  await finish("a", { kind: "retry", backoff: { initialMs: 30_000, maxMs: 600_000, jitter: "equal" } });
  await clock.advance(59_999);
  assert.equal(started.length, 2);
  await clock.advance(1);
  assert.equal(started.length, 3);
});

test("a handler that throws counts as a failure of its key, calls onHandlerError, and affects no other key", async () => {
  const { clock, queue, started, errors, finish, run } = setUp();
  void run(1);
  queue.add("a");
  queue.add("b");
  await clock.settle();
  const bug = new Error("bug");
  await finish("a", bug);
  assert.deepEqual(errors, [["a", bug]]);
  assert.deepEqual(started, ["a", "b"]);
  await finish("b", done);
  await clock.advance(100);
  assert.deepEqual(started, ["a", "b", "a"]);
});

test("an outcome with a delay that is not a number is a failure of its key, not of the queue", async () => {
  const { clock, queue, started, errors, finish, run } = setUp();
  void run(1);
  queue.add("a");
  await clock.settle();
  await finish("a", { kind: "again", afterMs: Number.NaN });
  assert.equal(errors.length, 1);
  await clock.advance(100);
  assert.equal(started.length, 2);
});

test("a fresh add handles a key in back-off at once, and its failures are kept", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.add("a");
  await clock.settle();
  await finish("a", retry);
  queue.add("a");
  await clock.settle();
  assert.equal(started.length, 2);
  assert.equal(clock.timerCount, 0);
  await finish("a", retry);
  await clock.advance(199);
  assert.equal(started.length, 2);
  await clock.advance(1);
  assert.equal(started.length, 3);
});

test("a fresh add while in flight does not wait for the back-off of the current attempt", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.add("a");
  await clock.settle();
  queue.add("a");
  await finish("a", retry);
  assert.equal(started.length, 2);
});

test("a resync respects the back-off of a failing key, waiting or in flight", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.add("a", "resync");
  await clock.settle();
  queue.add("a", "resync");
  await finish("a", retry);
  queue.add("a", "resync");
  await clock.advance(99);
  assert.equal(started.length, 1);
  await clock.advance(1);
  assert.equal(started.length, 2);
});

test("forget resets the back-off without enqueueing the key", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.add("a");
  await clock.settle();
  await finish("a", retry);
  await clock.advance(100);
  await finish("a", retry);
  queue.forget("a");
  queue.forget("unknown");
  await clock.advance(199);
  assert.equal(started.length, 2);
  await clock.advance(1);
  await finish("a", retry);
  await clock.advance(100);
  assert.equal(started.length, 4);
});

test("a delayed key is handled when it is due, or earlier if it is added", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.addAfter("late", 500);
  queue.addAfter("early", 200);
  queue.addAfter("early", 400);
  queue.addAfter("changed", 300);
  queue.add("changed", "resync");
  await clock.settle();
  assert.deepEqual(started, ["changed"]);
  assert.equal(clock.timerCount, 1);
  await finish("changed", done);
  await clock.advance(199);
  assert.deepEqual(started, ["changed"]);
  await clock.advance(1);
  assert.deepEqual(started, ["changed", "early"]);
  await finish("early", done);
  await clock.advance(300);
  assert.deepEqual(started, ["changed", "early", "late"]);
  assert.equal(clock.timerCount, 0);
});

test("a delay requested while in flight, by the handler or by others, applies after the handling", async () => {
  const { clock, queue, started, finish, run } = setUp();
  void run(1);
  queue.add("a");
  await clock.settle();
  queue.addAfter("a", 900);
  await finish("a", { kind: "again", afterMs: 300 });
  await clock.advance(299);
  assert.equal(started.length, 1);
  await clock.advance(1);
  assert.equal(started.length, 2);
  queue.addAfter("a", 900);
  await finish("a", done);
  await clock.advance(900);
  assert.equal(started.length, 3);
});

test("an hour of a thousand delayed keys takes one timer", async () => {
  const { clock, queue, run } = setUp();
  void run(1);
  for (let key = 0; key < 1_000; key++) queue.addAfter(`k${key}`, 3_600_000 - key);
  await clock.settle();
  assert.equal(clock.timerCount, 1);
  assert.equal(queue.counts.delayed, 1_000);
});

test("a timer that fires slightly early is set again", async () => {
  const { clock, queue, started } = setUp();
  const hasty = new WorkQueue(
    { backoff: { initialMs: 100, maxMs: 1_000, jitter: "equal" } },
    {
      clock: {
        wallMs: () => clock.wallMs(),
        nowMs: () => clock.nowMs(),
        setTimer: (delayMs, callback) => clock.setTimer(delayMs > 1 ? delayMs - 1 : delayMs, callback),
      },
      random: { next: () => 1 },
      onHandlerError: () => undefined,
    },
  );
  const run = hasty.run(
    1,
    async (key) => {
      started.push(`${key} at ${clock.nowMs()}`);
      return done;
    },
    new AbortController().signal,
  );
  hasty.addAfter("a", 100);
  await clock.advance(100);
  assert.deepEqual(started, ["a at 100"]);
  hasty.close();
  await run;
  queue.close();
});

test("the counts include the age of the oldest waiting key", async () => {
  const { clock, queue } = setUp();
  queue.add("old", "resync");
  await clock.advance(40);
  queue.add("new");
  await clock.advance(2);
  assert.deepEqual(queue.counts, {
    waiting: { fresh: 1, resync: 1 },
    delayed: 0,
    inFlight: 0,
    oldestWaitingMs: 42,
  });
});

test("the signal ends the run after the handlers in flight, and leaves no timer and no listener", async () => {
  const { clock, controller, signal, queue, started, finish, run } = setUp();
  let isOver = false;
  const running = run(1).then(() => {
    isOver = true;
  });
  queue.add("a");
  queue.add("b");
  queue.addAfter("c", 100);
  await clock.settle();
  controller.abort();
  await clock.advance(1_000);
  assert.equal(isOver, false);
  await finish("a", done);
  await running;
  assert.deepEqual(started, ["a"]);
  assert.equal(clock.timerCount, 0);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a later run continues with the keys of an earlier one, including aborted ones", async () => {
  const { clock, controller, queue, started, errors, finish, run } = setUp();
  const first = run(1);
  queue.add("cut short");
  queue.add("waiting");
  await clock.settle();
  controller.abort();
  await finish("cut short", new DOMException("This operation was aborted", "AbortError"));
  await first;
  const second = queue.run(
    2,
    async (key) => {
      started.push(key);
      return done;
    },
    new AbortController().signal,
  );
  await clock.settle();
  assert.deepEqual(started, ["cut short", "waiting", "cut short"]);
  assert.deepEqual(errors, []);
  queue.close();
  await second;
});

test("a second run at the same time and a run without workers throw", async () => {
  const { queue, run, signal } = setUp();
  await assert.rejects(
    queue.run(0, async () => done, signal),
    RangeError,
  );
  const running = run(1);
  await assert.rejects(run(1), /already running/);
  queue.close();
  await running;
});

test("a run under a signal that has aborted handles nothing", async () => {
  const { controller, queue, started, run } = setUp();
  queue.add("a");
  controller.abort();
  await run(1);
  assert.deepEqual(started, []);
});

test("closing drops every key, cancels the timer, ends the run, and ignores what comes after", async () => {
  const { clock, signal, queue, started, finish, run } = setUp();
  const running = run(1);
  queue.add("in flight");
  queue.add("waiting");
  queue.addAfter("delayed", 100);
  await clock.settle();
  queue.add("in flight");
  queue.close();
  queue.add("after");
  queue.addAfter("after", 10);
  assert.equal(clock.timerCount, 0);
  await finish("in flight", retry);
  await running;
  await clock.advance(10_000);
  assert.deepEqual(started, ["in flight"]);
  assert.deepEqual(queue.counts, empty);
  assert.equal(clock.timerCount, 0);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  await run(1);
});

test("a flood of keys that are handled synchronously yields to the event loop", async () => {
  const { clock, controller, queue } = setUp();
  let handled = 0;
  const running = queue.run(
    16,
    async () => {
      handled += 1;
      return done;
    },
    controller.signal,
  );
  for (let key = 0; key < 1_000; key++) queue.add(`k${key}`);
  await clock.settle();
  assert.ok(handled > 0 && handled < 1_000, `${handled} in one turn`);
  await clock.advance(0);
  assert.equal(handled, 1_000);
  for (let key = 0; key < 1_000; key++) queue.add(`k${key}`);
  await clock.settle();
  assert.ok(handled < 2_000);
  controller.abort();
  await running;
  assert.equal(clock.timerCount, 0);
});

test("a hundred thousand keys, promoted, delayed, retried and drained, are each handled", async () => {
  const { clock, queue } = setUp({ backoff: { initialMs: 1, maxMs: 1, jitter: "full" } });
  const handled = new Map<string, number>();
  const keys = Array.from({ length: 100_000 }, (_, index) => `k${index}`);
  for (const key of keys) queue.add(key, "resync");
  for (const key of keys.slice(50_000)) queue.add(key);
  const running = queue.run(
    16,
    async (key) => {
      const times = (handled.get(key) ?? 0) + 1;
      handled.set(key, times);
      return times === 1 ? retry : done;
    },
    new AbortController().signal,
  );
  await clock.advance(10);
  assert.equal(handled.size, keys.length);
  assert.ok([...handled.values()].every((times) => times === 2));
  assert.deepEqual(queue.counts, empty);
  queue.close();
  await running;
});
