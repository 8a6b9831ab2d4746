import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { DeadlineError, isAbort, linkSignals, withTimeout } from "./abort.ts";
import { sleep } from "./clock.ts";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

test("a linked signal aborts with the reason of the first parent that does", () => {
  const first = new AbortController();
  const second = new AbortController();
  const linked = linkSignals(first.signal, second.signal);
  const reason = new Error("second");
  second.abort(reason);
  first.abort(new Error("first"));
  assert.equal(linked.signal.reason, reason);
  assert.equal(listeners(first.signal), 0);
});

test("a linked signal is aborted from the start if a parent is", () => {
  const parent = new AbortController();
  const reason = new Error("before");
  const linked = linkSignals(parent.signal, AbortSignal.abort(reason));
  assert.equal(linked.signal.reason, reason);
  assert.equal(listeners(parent.signal), 0);
});

test("aborting a linked signal does not abort its parents, and releasing it removes its listeners", () => {
  const parent = new AbortController();
  const aborted = linkSignals(parent.signal);
  aborted.abort();
  assert.equal(parent.signal.aborted, false);
  const released = linkSignals(parent.signal);
  released.release();
  assert.equal(listeners(parent.signal), 0);
  parent.abort();
  assert.equal(released.signal.aborted, false);
});

test("work that ends within its deadline returns its value and leaves no timer and no listener", async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  assert.equal(await withTimeout(clock, 1_000, signal, async () => "value"), "value");
  assert.equal(clock.timerCount, 0);
  assert.equal(listeners(signal), 0);
});

test("a deadline aborts the work's signal and rejects, even if the work ignores it", async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  let given: AbortSignal | undefined;
  const deaf = withTimeout(clock, 1_000, signal, (child) => {
    given = child;
    return new Promise(() => undefined);
  });
  const rejected = assert.rejects(
    deaf,
    (error) => error instanceof DeadlineError && error.timeoutMs === 1_000,
  );
  await clock.advance(999);
  assert.equal(given?.aborted, false);
  await clock.advance(1);
  await rejected;
  assert.ok(given?.reason instanceof DeadlineError);
  assert.equal(signal.aborted, false);
  assert.equal(listeners(signal), 0);
});

test("a deadline rejects with its own error, not with the one that the work throws because of it", async () => {
  const clock = new FakeClock();
  const timed = withTimeout(clock, 1_000, new AbortController().signal, async (child) => {
    await sleep(clock, 5_000, child).catch(() => {
      throw new Error("transport closed");
    });
  });
  const rejected = assert.rejects(timed, DeadlineError);
  await clock.advance(1_000);
  await rejected;
  assert.equal(clock.timerCount, 0);
});

test("the caller's signal ends the wait at once with its own reason", async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const reason = new Error("stop");
  const timed = withTimeout(clock, 1_000, controller.signal, () => new Promise(() => undefined));
  const rejected = assert.rejects(timed, reason);
  controller.abort(reason);
  await rejected;
  assert.equal(clock.timerCount, 0);
});

test("the first of several signals to abort ends the wait, and all listeners are removed", async () => {
  const clock = new FakeClock();
  const parents = [new AbortController(), new AbortController()];
  const signals = parents.map(({ signal }) => signal);
  const waiting = withTimeout(clock, 1_000, signals, () => new Promise<never>(() => undefined));
  parents[1]?.abort("the second");
  await assert.rejects(waiting, (reason) => reason === "the second");
  assert.equal(clock.timerCount, 0);
  for (const signal of signals) assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("work does not start under a signal that has aborted", async () => {
  const clock = new FakeClock();
  const reason = new Error("stop");
  let hasStarted = false;
  const timed = withTimeout(clock, 1_000, AbortSignal.abort(reason), async () => {
    hasStarted = true;
  });
  await assert.rejects(timed, reason);
  assert.equal(hasStarted, false);
  assert.equal(clock.timerCount, 0);
});

test("work that throws synchronously rejects and cleans up, even if it aborted first", async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const reason = new Error("stop");
  const timed = withTimeout(clock, 1_000, controller.signal, () => {
    controller.abort(reason);
    throw new Error("bug");
  });
  await assert.rejects(timed, reason);
  assert.equal(clock.timerCount, 0);
  assert.equal(listeners(controller.signal), 0);
});

test("a late result of work that ignores its signal is dropped without an unhandled rejection", async () => {
  const clock = new FakeClock();
  let failLate: (error: Error) => void = () => undefined;
  const timed = withTimeout(clock, 10, new AbortController().signal, () => {
    return new Promise((_, reject) => {
      failLate = reject;
    });
  });
  const rejected = assert.rejects(timed, DeadlineError);
  await clock.advance(10);
  await rejected;
  failLate(new Error("late"));
  await clock.settle();
});

test("thousands of calls on one signal, many at a time, leave no listener and no timer", async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on("warning", onWarning);
  for (let round = 0; round < 30; round++) {
    const calls = Array.from({ length: 100 }, (_, index) =>
      withTimeout(clock, 50, signal, async (child) => {
        if (index < 10) await sleep(clock, index < 5 ? 10 : 90, child);
      }).catch(() => undefined),
    );
    assert.equal(listeners(signal), calls.length);
    await clock.advance(50);
    await Promise.all(calls);
  }
  process.off("warning", onWarning);
  assert.equal(listeners(signal), 0);
  assert.equal(clock.timerCount, 0);
  assert.deepEqual(warnings, []);
});

test("an error is an abort if it is the signal's reason, wraps it, or is an AbortError", () => {
  const reason = new Error("stop");
  const signal = AbortSignal.abort(reason);
  assert.ok(isAbort(reason, signal));
  assert.ok(isAbort(new Error("call failed", { cause: new Error("canceled", { cause: reason }) }), signal));
  assert.ok(isAbort(new DOMException("This operation was aborted", "AbortError"), signal));
  assert.ok(isAbort("plain", AbortSignal.abort("plain")));
});

test("an unrelated failure is not an abort, before and after the signal aborts", () => {
  const signal = AbortSignal.abort();
  assert.equal(isAbort(new Error("disk full"), signal), false);
  assert.equal(isAbort(undefined, signal), false);
  const abortOfSomebodyElse = new DOMException("This operation was aborted", "AbortError");
  assert.equal(isAbort(abortOfSomebodyElse, new AbortController().signal), false);
});

test("an error that is its own cause is not an abort, and does not loop for ever", () => {
  const error = new Error("round and round");
  error.cause = error;
  assert.equal(isAbort(error, AbortSignal.abort()), false);
});
