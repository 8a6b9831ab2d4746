import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import { type DefinedKind, whenWatching } from "./controller-definition.ts";

const never = new AbortController().signal;

/** A kind whose complete state arrives bit by bit. */
function arriving() {
  const progress = { initial: 0, synced: false };
  const synced = new Set<() => void>();
  const kind: DefinedKind = {
    required: true,
    revision: 0,
    owned: undefined,
    isComplete: false,
    get initial() {
      return progress.initial;
    },
    get synced() {
      return progress.synced;
    },
    status: () => ({ kind: "Pod", objects: 0, synced: progress.synced, lastError: "" }),
    run: () => assert.fail("a wait runs nothing"),
    subscribe: () => assert.fail("a wait does not subscribe"),
    whenSynced: (signal) =>
      new Promise((resolve, reject) => {
        synced.add(resolve);
        onAbort(signal, () => reject(signal.reason));
      }),
  };
  const finish = () => {
    progress.synced = true;
    for (const done of synced) done();
  };
  return { kind, progress, finish };
}

test("a start waits for as long as more objects arrive, and fails once none do", async () => {
  const clock = new FakeClock();
  const { kind, progress } = arriving();
  const failed = assert.rejects(whenWatching("deployments", [kind], 1_000, clock, never), /cannot watch Pod/);
  for (const initial of [10, 20, 30]) {
    progress.initial = initial;
    await clock.advance(1_000);
  }
  assert.equal(clock.timerCount, 1);
  await clock.advance(1_000);
  await failed;
  assert.equal(clock.timerCount, 0);
});

test("a start that takes longer than its limit ends well when everything has arrived", async () => {
  const clock = new FakeClock();
  const { kind, progress, finish } = arriving();
  const watching = whenWatching("deployments", [kind], 1_000, clock, never);
  progress.initial = 10;
  await clock.advance(1_500);
  finish();
  await watching;
});
