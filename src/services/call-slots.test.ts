import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CallSlots } from "./call-slots.ts";

const never = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Calls that end when the test says so. */
function calls(slots: CallSlots) {
  const running: string[] = [];
  const ends = new Map<string, (failure?: Error) => void>();
  const start = (name: string, signal = never) => {
    const taken = slots.run(
      () =>
        new Promise<string>((resolve, reject) => {
          running.push(name);
          ends.set(name, (failure) => {
            running.splice(running.indexOf(name), 1);
            if (failure) reject(failure);
            else resolve(name);
          });
        }),
      signal,
    );
    taken?.catch(() => undefined);
    return taken;
  };
  return { running, start, end: (name: string, failure?: Error) => ends.get(name)?.(failure) };
}

describe("CallSlots", () => {
  test("limits the running and the waiting calls, and rejects more", async () => {
    const { running, start, end } = calls(new CallSlots({ runningMax: 2, waitingMax: 2 }));
    const taken = ["a", "b", "c", "d"].map((name) => start(name));
    assert.equal(start("e"), undefined);
    assert.deepEqual(running, ["a", "b"]);
    end("a");
    await settle();
    assert.deepEqual(running, ["b", "c"]);
    end("b", new Error("failed"));
    await settle();
    assert.deepEqual(running, ["c", "d"]);
    end("c");
    end("d");
    const outcomes = await Promise.allSettled(taken);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled", "fulfilled"],
    );
    void start("f");
    void start("g");
    assert.deepEqual(running, ["f", "g"]);
  });

  test("a waiting call that is aborted makes room for another and never runs", async () => {
    const { running, start, end } = calls(new CallSlots({ runningMax: 1, waitingMax: 1 }));
    const giveUp = new AbortController();
    void start("a");
    const waiting = start("b", giveUp.signal);
    assert.equal(start("c"), undefined);
    giveUp.abort(new Error("enough"));
    await assert.rejects(async () => waiting, /enough/);
    const last = start("c");
    end("a");
    await settle();
    assert.deepEqual(running, ["c"]);
    end("c");
    assert.equal(await last, "c");
  });

  test("a new call does not take the slot of the next waiting one", async () => {
    const { running, start, end } = calls(new CallSlots({ runningMax: 1, waitingMax: 5 }));
    const first = start("a");
    void start("b");
    end("a");
    await first;
    void start("c");
    await settle();
    assert.deepEqual(running, ["b"]);
  });
});
