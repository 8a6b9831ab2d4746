import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { deletion, WritePace } from "./write-pace.ts";

const state = 1;

/** Writes, and writes again as soon as allowed, because something undoes each write at once. */
async function fight(clock: FakeClock, pace: WritePace, repeats: number, what: "repair" | "presence") {
  pace.wrote("a", "sent", state);
  const pauses: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const pauseMs = pace.waitMs("a", "sent", state, what);
    pauses.push(pauseMs);
    await clock.advance(pauseMs);
    assert.equal(pace.waitMs("a", "sent", state, what), 0);
    pace.wrote("a", "sent", state);
  }
  return pauses;
}

test("the first repairs happen at once, later ones back off", async () => {
  const clock = new FakeClock();
  const pauses = await fight(clock, new WritePace(clock), 12, "repair");
  assert.deepEqual(pauses.slice(0, 6), [0, 0, 0, 10_000, 20_000, 40_000]);
  assert.equal(Math.max(...pauses), 600_000);
});

test("a missing object waits a minute at most", async () => {
  const clock = new FakeClock();
  const pauses = await fight(clock, new WritePace(clock), 12, "presence");
  assert.deepEqual(pauses.slice(3), [10_000, 20_000, 40_000, ...Array(6).fill(60_000)]);
});

test("another manifest, a deletion and a new state are not repeated writes, and old ones are forgotten", async () => {
  const clock = new FakeClock();
  const pace = new WritePace(clock);
  for (let repeat = 0; repeat < 6; repeat++) pace.wrote("a", "sent", state);
  assert.ok(pace.waitMs("a", "sent", state, "repair") > 0);
  assert.ok(pace.fightOf("a", "sent", state) !== undefined);
  for (const [wanted, wantedState] of [
    ["new", state],
    [deletion, state],
    ["sent", state + 1],
  ] as const) {
    assert.equal(pace.waitMs("a", wanted, wantedState, "repair"), 0);
    assert.equal(pace.fightOf("a", wanted, wantedState), undefined);
  }
  await clock.advance(3_600_000);
  assert.equal(pace.fightOf("a", "sent", state), undefined);
  pace.wrote("a", "sent", state);
  assert.equal(pace.waitMs("a", "sent", state, "repair"), 0);
});

test("a program that acts less often than krane would wait is answered at once, and counts as a fight", async () => {
  const clock = new FakeClock();
  const pace = new WritePace(clock);
  for (let repeat = 0; repeat < 20; repeat++) {
    assert.equal(pace.waitMs("a", "sent", state, "repair"), 0, `repeat ${repeat}`);
    pace.wrote("a", "sent", state);
    await clock.advance(25_000);
  }
  assert.ok(pace.fightOf("a", "sent", state) !== undefined);
});

test("a fight begins with the first repeated write", async () => {
  const clock = new FakeClock();
  const pace = new WritePace(clock);
  pace.wrote("a", "sent", state);
  await clock.advance(3_600_000);
  const begunMs = clock.wallMs();
  await fight(clock, pace, 4, "repair");
  assert.equal(pace.fightOf("a", "sent", state)?.sinceMs, begunMs);
});
