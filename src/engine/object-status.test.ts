import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { ObjectStatuses } from "./object-status.ts";
import { OrderWaits } from "./orders.ts";

test("attempts count failures in a row, and sinceMs is the time of the last change", async () => {
  const clock = new FakeClock();
  const statuses = new ObjectStatuses(clock, () => undefined);
  const beganMs = clock.wallMs();
  assert.ok(statuses.record("a", { outcome: "retrying", reason: "one" }).isNews);
  await clock.advance(1_000);
  assert.ok(!statuses.record("a", { outcome: "retrying", reason: "one" }).isNews);
  assert.ok(statuses.record("a", { outcome: "retrying", reason: "two" }).isNews);
  assert.equal(statuses.get("a")?.attempts, 3);
  assert.equal(statuses.get("a")?.sinceMs, beganMs);
  statuses.record("a", { outcome: "applied", appliedVersion: 7n });
  assert.equal(statuses.get("a")?.attempts, 0);
  statuses.record("a", { outcome: "parked", reason: "wrong", fieldPath: "port" });
  assert.equal(statuses.get("a")?.appliedVersion, 7n);
});

test("onCount is called whenever a count changes", () => {
  const counts: string[] = [];
  const statuses = new ObjectStatuses(new FakeClock(), (outcome, count) =>
    counts.push(`${outcome} ${count}`),
  );
  statuses.record("a", { outcome: "parked" });
  statuses.record("b", { outcome: "parked" });
  statuses.record("a", { outcome: "unchanged" });
  statuses.forget("b");
  assert.deepEqual(counts, ["parked 1", "parked 2", "parked 1", "parked 0"]);
  assert.equal(statuses.countOf("parked"), 0);
});

test("an order resolves with the first outcome of work that began after it, not with pending", async () => {
  const waits = new OrderWaits();
  const statuses = new ObjectStatuses(new FakeClock(), () => undefined);
  const never = new AbortController().signal;
  let ended: string | undefined;
  const waiting = waits.wait("a", 5, never).then(({ outcome }) => {
    ended = outcome;
  });
  waits.settle("a", 4, statuses.record("a", { outcome: "applied" }).record);
  waits.settle("a", 5, statuses.record("a", { outcome: "pending" }).record);
  await Promise.resolve();
  assert.equal(ended, undefined);
  waits.settle("a", 6, statuses.record("a", { outcome: "unchanged" }).record);
  await waiting;
  assert.equal(ended, "unchanged");
});

test("an aborted order leaves nothing behind", async () => {
  const waits = new OrderWaits();
  const giveUp = new AbortController();
  const waiting = waits.wait("a", 1, giveUp.signal);
  giveUp.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(waits.wait("a", 1, giveUp.signal), /enough/);
});
