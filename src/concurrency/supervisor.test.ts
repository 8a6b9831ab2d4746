import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { sleep } from "./clock.ts";
import { supervise } from "./supervisor.ts";

interface Failure {
  readonly name: string;
  readonly message: string;
  readonly restarts: number;
  readonly atMs: number;
}

function setUp() {
  const clock = new FakeClock();
  const controller = new AbortController();
  const failures: Failure[] = [];
  const deps = {
    clock,
    // Always the longest wait, so that the times below are exact.
    random: { next: () => 1 },
    onFailure: (name: string, error: unknown, restarts: number) => {
      failures.push({ name, message: String(error), restarts, atMs: clock.nowMs() });
    },
  };
  return { clock, controller, failures, deps, signal: controller.signal };
}

const failureTimes = (failures: readonly Failure[]) => failures.map(({ atMs }) => atMs);

test("a loop that rejects is restarted with back-off, and onFailure is called every time", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  const supervised = supervise("resync", () => Promise.reject(new Error("boom")), deps, signal);
  await clock.advance(200_000);
  assert.deepEqual(
    failureTimes(failures),
    [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000],
  );
  assert.deepEqual(failures[1], { name: "resync", message: "Error: boom", restarts: 2, atMs: 1_000 });
  controller.abort();
  await supervised;
  assert.equal(clock.timerCount, 0);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a loop that throws synchronously is restarted like any other", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  const loop = () => {
    throw new Error("sync");
  };
  const supervised = supervise("watch", loop, deps, signal);
  await clock.advance(1_000);
  assert.deepEqual(failureTimes(failures), [0, 1_000]);
  controller.abort();
  await supervised;
});

test("a loop that ends on its own is restarted, and counts as a failure", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  const supervised = supervise("watch", (loopSignal) => sleep(clock, 500, loopSignal), deps, signal);
  await clock.advance(1_600);
  assert.deepEqual(failureTimes(failures), [500]);
  assert.match(failures[0]?.message ?? "", /loop watch ended/);
  await clock.advance(400);
  assert.deepEqual(failureTimes(failures), [500, 2_000]);
  controller.abort();
  await supervised;
});

test("a loop that was healthy for two minutes starts its back-off over, a shorter one does not", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  const livesMs = [0, 0, 0, 119_999, 120_000, 0];
  let runs = 0;
  const loop = async (loopSignal: AbortSignal) => {
    await sleep(clock, livesMs[runs++] ?? 1e9, loopSignal);
    throw new Error("boom");
  };
  const supervised = supervise("stream", loop, deps, signal);
  await clock.advance(400_000);
  const waits = [1_000, 2_000, 4_000, 8_000, 1_000, 2_000];
  let atMs = 0;
  const expected = livesMs.map((lifeMs, index) => {
    const failedMs = atMs + lifeMs;
    atMs = failedMs + (waits[index] ?? 0);
    return failedMs;
  });
  assert.deepEqual(failureTimes(failures), expected);
  controller.abort();
  await supervised;
});

test("two runs never overlap, and work left behind by a run sees its signal abort", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  let alive = 0;
  let aliveMost = 0;
  const signals: AbortSignal[] = [];
  const loop = async (loopSignal: AbortSignal) => {
    assert.ok(signals.every((earlier) => earlier.aborted));
    signals.push(loopSignal);
    alive += 1;
    aliveMost = Math.max(aliveMost, alive);
    await sleep(clock, 5_000, loopSignal).finally(() => {
      alive -= 1;
    });
    throw new Error("boom");
  };
  const supervised = supervise("stream", loop, deps, signal);
  await clock.advance(60_000);
  assert.ok(failures.length > 2);
  assert.equal(aliveMost, 1);
  controller.abort();
  await supervised;
  assert.equal(alive, 0);
});

test("supervision resolves after the signal has aborted and the loop has ended, without a failure", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  let isCleanedUp = false;
  let isOver = false;
  const loop = async (loopSignal: AbortSignal) => {
    try {
      await sleep(clock, 1e9, loopSignal);
    } finally {
      await sleep(clock, 300, new AbortController().signal);
      isCleanedUp = true;
    }
  };
  const supervised = supervise("stream", loop, deps, signal).then(() => {
    isOver = true;
  });
  await clock.advance(1_000);
  controller.abort();
  await clock.advance(299);
  assert.equal(isOver, false);
  await clock.advance(1);
  await supervised;
  assert.ok(isCleanedUp);
  assert.deepEqual(failures, []);
});

test("an unrelated error on the way out calls onFailure once, and supervision still resolves", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  const loop = (loopSignal: AbortSignal) =>
    sleep(clock, 1e9, loopSignal).catch(() => {
      throw new Error("flush failed");
    });
  const supervised = supervise("reporter", loop, deps, signal);
  await clock.settle();
  controller.abort();
  await supervised;
  assert.deepEqual(
    failures.map(({ message }) => message),
    ["Error: flush failed"],
  );
  assert.equal(clock.timerCount, 0);
});

test("the signal ends supervision during a back-off", async () => {
  const { clock, controller, failures, deps, signal } = setUp();
  const supervised = supervise("stream", () => Promise.reject(new Error("boom")), deps, signal);
  await clock.advance(500);
  controller.abort();
  await supervised;
  await clock.advance(1e6);
  assert.equal(failures.length, 1);
  assert.equal(clock.timerCount, 0);
});

test("a loop does not start under a signal that has aborted", async () => {
  const { deps } = setUp();
  let runs = 0;
  const loop = async () => {
    runs += 1;
  };
  await supervise("stream", loop, deps, AbortSignal.abort());
  assert.equal(runs, 0);
});

test("an onFailure that throws does not end supervision", async () => {
  const { clock, controller, deps, signal } = setUp();
  let runs = 0;
  const loop = async () => {
    runs += 1;
    throw new Error("boom");
  };
  const onFailure = () => {
    throw new Error("log is broken");
  };
  const supervised = supervise("stream", loop, { ...deps, onFailure }, signal);
  await clock.advance(3_000);
  assert.equal(runs, 3);
  controller.abort();
  await supervised;
});
