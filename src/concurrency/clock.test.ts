import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createSystemClock, sleep } from "./clock.ts";

test("a sleep ends when its time has passed and leaves no timer and no listener", async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  let isOver = false;
  const sleeping = sleep(clock, 1_000, signal).then(() => {
    isOver = true;
  });
  await clock.advance(999);
  assert.equal(isOver, false);
  await clock.advance(1);
  assert.equal(isOver, true);
  await sleeping;
  assert.equal(clock.timerCount, 0);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a sleep ends at once with the signal's reason and leaves no timer", async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const reason = new Error("stop");
  const sleeping = assert.rejects(sleep(clock, 1_000, controller.signal), reason);
  controller.abort(reason);
  await sleeping;
  assert.equal(clock.timerCount, 0);
});

test("a sleep under a signal that has aborted sets no timer", async () => {
  const clock = new FakeClock();
  const reason = new Error("stop");
  await assert.rejects(sleep(clock, 1_000, AbortSignal.abort(reason)), reason);
  assert.equal(clock.timerCount, 0);
});

test("the system clock throws for a delay that is not a number", () => {
  assert.throws(() => createSystemClock().setTimer(Number.NaN, () => undefined), RangeError);
});

test("a timer of the system clock fires once and not after it was cancelled", async () => {
  const clock = createSystemClock();
  const fired: string[] = [];
  clock.setTimer(0, () => fired.push("cancelled")).cancel();
  await new Promise<void>((resolve) => {
    clock.setTimer(-1, () => {
      fired.push("kept");
      resolve();
    });
  });
  assert.deepEqual(fired, ["kept"]);
});

test("a delay above Node's limit is cut to the limit, or Node would fire at once", async () => {
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(warning.name);
  process.on("warning", onWarning);
  createSystemClock()
    .setTimer(Number.POSITIVE_INFINITY, () => undefined)
    .cancel();
  // Node warns about an overflow in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", onWarning);
  assert.deepEqual(warnings, []);
});
