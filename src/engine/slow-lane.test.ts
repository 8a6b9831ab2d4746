import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { SlowLane } from "./slow-lane.ts";

test("everything behind an obstacle backs off, longer each time, and nothing else does", async () => {
  const clock = new FakeClock();
  const backoff = { initialMs: 1_000, maxMs: 8_000, jitter: "equal" } as const;
  const lane = new SlowLane(backoff, { clock, random: createSeededRandom(1) });
  assert.equal(lane.wait("ReplicaSet/a"), undefined);
  const waits: number[] = [];
  for (let failure = 0; failure < 6; failure++) {
    waits.push(lane.failed("ReplicaSet/a", "quota").waitMs);
    assert.equal(lane.wait("ReplicaSet/a")?.reason, "quota");
    assert.equal(lane.wait("ReplicaSet/b"), undefined);
    await clock.advance(8_000);
    assert.equal(lane.wait("ReplicaSet/a"), undefined);
  }
  assert.ok((waits[0] ?? 0) <= 1_000 && (waits[5] ?? 0) >= 4_000, waits.join());
  lane.failed("ReplicaSet/a", "quota");
  lane.succeeded("ReplicaSet/a");
  assert.equal(lane.wait("ReplicaSet/a"), undefined);
});

test("failures of the server close the lane when several objects meet them in a row", async () => {
  const clock = new FakeClock();
  const backoff = { initialMs: 1_000, maxMs: 8_000, jitter: "equal" } as const;
  const lane = new SlowLane(backoff, { clock, random: createSeededRandom(1) });
  const scope = "ReplicaSet/a";
  for (let failure = 0; failure < 10; failure++) assert.equal(lane.struggled(scope, "bad", "500"), undefined);
  assert.equal(lane.wait(scope), undefined, "one bad object says nothing about the others");
  lane.succeeded(scope);
  assert.equal(lane.struggled(scope, "one", "500"), undefined);
  assert.equal(lane.struggled(scope, "two", "500"), undefined);
  lane.succeeded(scope);
  assert.equal(lane.struggled(scope, "one", "500"), undefined);
  assert.equal(lane.struggled(scope, "two", "500"), undefined);
  const closed = lane.struggled(scope, "one", "500");
  assert.equal(closed?.reason, "500");
  await clock.advance(closed.waitMs / 2);
  // Sent before the lane was closed: it is the same failure, and does not make the wait longer.
  for (let late = 0; late < 20; late++) assert.ok((lane.struggled(scope, "two", "500")?.waitMs ?? 0) <= 500);
  await clock.advance(500);
  assert.equal(lane.wait(scope), undefined);
  assert.ok((lane.struggled(scope, "two", "500")?.waitMs ?? 0) >= 1_000);
});
