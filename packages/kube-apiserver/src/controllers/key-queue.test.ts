import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "../testing.ts";
import { KeyQueue, type Reconcile, type WorkOutcome } from "./key-queue.ts";

const done: WorkOutcome = { kind: "done" };

function start(reconcile: Reconcile) {
  const clock = new FakeClock();
  const failed: string[] = [];
  const stop = new AbortController();
  const queue = new KeyQueue({ clock, random: { next: () => 0.999 } }, (key) => failed.push(key));
  const ended = queue.run(reconcile, stop.signal);
  return { clock, queue, failed, stop, ended };
}

describe("a queue of keys", () => {
  it("handles each waiting key once, in the order of arrival", async () => {
    const handled: string[] = [];
    const { clock, queue } = start(async (key) => {
      handled.push(key);
      return done;
    });
    for (const key of ["a", "b", "a", "c", "b"]) queue.add(key);
    await clock.settle();
    assert.deepEqual(handled, ["a", "b", "c"]);
  });

  it("handles a key again that was added while it was handled, and only one key at a time", async () => {
    const log: string[] = [];
    const finish: (() => void)[] = [];
    const { clock, queue } = start(async (key) => {
      log.push(`begin ${key}`);
      await new Promise<void>((resolve) => finish.push(resolve));
      log.push(`end ${key}`);
      return done;
    });
    queue.add("a");
    await clock.settle();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    for (let count = 0; count < 4; count++) {
      await clock.settle();
      finish.shift()?.();
    }
    await clock.settle();
    assert.deepEqual(log, ["begin a", "end a", "begin a", "end a", "begin b", "end b"]);
  });

  it("handles delayed keys when due, earliest first, and immediately if they are added before", async () => {
    const handled: string[] = [];
    const delays = new Map([
      ["slow", 300],
      ["fast", 100],
      ["early", 200],
    ]);
    const { clock, queue } = start(async (key) => {
      handled.push(key);
      const afterMs = delays.get(key);
      delays.delete(key);
      return afterMs === undefined ? done : { kind: "again", afterMs };
    });
    for (const key of delays.keys()) queue.add(key);
    await clock.advance(50);
    queue.add("early");
    await clock.settle();
    assert.deepEqual(handled, ["slow", "fast", "early", "early"]);
    await clock.advance(1_000);
    assert.deepEqual(handled.slice(4), ["fast", "slow"]);
    assert.equal(clock.timerCount, 0);
  });

  it("retries a failing key with back-off, which a success resets", async () => {
    const times: number[] = [];
    let failures = 3;
    const { clock, queue, failed } = start(async () => {
      times.push(clock.nowMs());
      if (failures-- > 0) throw new Error("not yet");
      return done;
    });
    queue.add("a");
    await clock.advance(1_000);
    const pauses = times.slice(1).map((time, index) => Math.round(time - (times[index] ?? 0)));
    assert.deepEqual(pauses, [20, 40, 80]);
    assert.deepEqual(failed, ["a", "a", "a"]);
    failures = 1;
    queue.add("a");
    await clock.advance(1_000);
    assert.equal(Math.round((times.at(-1) ?? 0) - (times.at(-2) ?? 0)), 20);
  });

  it("ends when the signal aborts and leaves no timer", async () => {
    const { clock, queue, stop, ended } = start(async () => ({ kind: "again", afterMs: 60_000 }));
    queue.add("a");
    await clock.settle();
    assert.equal(clock.timerCount, 1);
    stop.abort();
    await ended;
    assert.equal(clock.timerCount, 0);
  });

  it("yields to the event loop during a flood of keys", async () => {
    let handled = 0;
    const { clock, queue } = start(async () => {
      handled += 1;
      return done;
    });
    for (let index = 0; index < 1_000; index++) queue.add(`${index}`);
    await clock.settle();
    assert.ok(handled < 1_000, "all keys were handled without a timer in between");
    await clock.advance(1);
    assert.equal(handled, 1_000);
  });
});
