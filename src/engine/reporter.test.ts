import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { CircuitBreaker } from "../concurrency/circuit-breaker.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { type ControlPlaneCode, ControlPlaneError } from "../control-plane/error.ts";
import { isOutage } from "./classify.ts";
import { type Observation, Reporter } from "./reporter.ts";

class Desk {
  readonly clock = new FakeClock();
  readonly arrived: string[] = [];
  readonly world = new Map<string, string>();
  readonly deletesWanted = new Set<string>();
  failure: ControlPlaneCode | undefined;
  retryAfterMs: number | undefined;
  /** Reports wait for endSlow(), and fail then. */
  slow = false;
  endSlow: () => void = () => undefined;
  readonly hanging = new Set<string>();
  readonly breaker = new CircuitBreaker({ name: "test" }, { clock: this.clock, countsAsFailure: isOutage });
  readonly stopping = new AbortController();
  readonly reporter = new Reporter(
    { workers: 2 },
    {
      clock: this.clock,
      random: createSeededRandom(1),
      breaker: this.breaker,
      observe: (key) => this.observe(key),
      isDeletionWanted: (key) => this.deletesWanted.has(key),
      onError: (_, error) => assert.fail(String(error)),
    },
  );
  readonly done = this.reporter.run(this.stopping.signal);

  set(key: string, state: string): void {
    this.world.set(key, state);
    this.reporter.changed(key);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.done;
    assert.equal(this.clock.timerCount, 0);
  }

  private observe(key: string): Observation {
    const state = this.world.get(key);
    const fingerprint = state ?? "gone";
    return {
      change: state === undefined ? "delete" : "update",
      fingerprint,
      send: async (signal) => {
        this.arrived.push(`${key}=${fingerprint}`);
        if (this.hanging.has(key))
          await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        if (this.slow) {
          await new Promise<void>((resolve) => {
            this.endSlow = resolve;
          });
          throw new ControlPlaneError("unavailable", "the connection broke");
        }
        if (this.failure !== undefined)
          throw new ControlPlaneError(this.failure, this.failure, { retryAfterMs: this.retryAfterMs });
      },
    };
  }
}

test("equal reports are sent once, and any number of changes in between becomes one report", async () => {
  const desk = new Desk();
  for (let change = 1; change <= 100; change++) desk.set("a", `${change}`);
  await desk.clock.settle();
  desk.reporter.changed("a");
  await desk.clock.settle();
  assert.deepEqual(desk.arrived, ["a=100"]);
  await desk.stop();
});

test("a failed report is retried until it is delivered", async () => {
  const desk = new Desk();
  desk.failure = "unauthenticated";
  desk.set("a", "one");
  await desk.clock.advance(10_000);
  const tries = desk.arrived.length;
  assert.ok(tries > 1);
  desk.failure = undefined;
  await desk.clock.advance(60_000);
  assert.equal(desk.arrived.length, tries + 1);
  await desk.stop();
});

test("a rejected report is not repeated until the state changes", async () => {
  const desk = new Desk();
  desk.failure = "not_found";
  desk.set("a", "one");
  await desk.clock.advance(120_000);
  assert.deepEqual(desk.arrived, ["a=one"]);
  desk.set("a", "two");
  await desk.clock.settle();
  assert.deepEqual(desk.arrived, ["a=one", "a=two"]);
  await desk.stop();
});

test("after a few failures the breaker opens, and everything is delivered after the outage", async () => {
  const desk = new Desk();
  desk.failure = "unavailable";
  for (let key = 0; key < 50; key++) desk.set(`key-${key}`, "one");
  await desk.clock.advance(30_000);
  assert.equal(desk.breaker.state, "open");
  assert.ok(desk.arrived.length <= 6, `${desk.arrived.length} calls`);
  desk.failure = undefined;
  desk.arrived.length = 0;
  await desk.clock.advance(300_000);
  assert.equal(new Set(desk.arrived).size, 50);
  assert.equal(desk.arrived.length, 50);
  await desk.stop();
});

test("a report that hangs delays no other", async () => {
  const desk = new Desk();
  desk.hanging.add("a");
  desk.set("a", "one");
  for (const key of ["b", "c", "d"]) desk.set(key, "one");
  await desk.clock.settle();
  assert.deepEqual(desk.arrived.sort(), ["a=one", "b=one", "c=one", "d=one"]);
  await desk.stop();
});

test("every report is sent again within ten minutes, spread over time", async () => {
  const desk = new Desk();
  for (let key = 0; key < 30; key++) desk.set(`key-${key}`, "one");
  await desk.clock.settle();
  const perMinute: number[] = [];
  for (let minute = 1; minute <= 10; minute++) {
    const before = desk.arrived.length;
    await desk.clock.advance(60_000);
    desk.reporter.resendDue();
    await desk.clock.settle();
    perMinute.push(desk.arrived.length - before);
  }
  assert.equal(desk.arrived.length, 60);
  assert.ok(Math.max(...perMinute) < 15, perMinute.join());
  await desk.stop();
});

test("a deletion is reported once, if the object was reported before or its deletion was wanted", async () => {
  const desk = new Desk();
  desk.reporter.changed("never-seen");
  desk.deletesWanted.add("ordered");
  desk.reporter.changed("ordered");
  desk.set("known", "one");
  await desk.clock.settle();
  desk.world.delete("known");
  desk.reporter.changed("known");
  await desk.clock.advance(1_200_000);
  desk.reporter.resendDue();
  await desk.clock.settle();
  assert.deepEqual(desk.arrived.sort(), ["known=gone", "known=one", "ordered=gone"]);
  await desk.stop();
});

test("undelivered reports are sent at once after a sign of life", async () => {
  const desk = new Desk();
  desk.failure = "unavailable";
  for (let key = 0; key < 50; key++) desk.set(`key-${key}`, "one");
  await desk.clock.advance(30_000);
  assert.equal(desk.breaker.state, "open");
  desk.failure = undefined;
  desk.arrived.length = 0;
  desk.reporter.retryMissed();
  // Ten are the breaker's probes; the others were turned away meanwhile and wait for a second or two.
  await desk.clock.advance(3_000);
  assert.equal(new Set(desk.arrived).size, 50);
  assert.equal(desk.breaker.state, "closed");
  desk.arrived.length = 0;
  desk.reporter.retryMissed();
  await desk.clock.settle();
  assert.deepEqual(desk.arrived, [], "nothing was missed any more");
  await desk.stop();
});

test("probes back off if the control plane gives signs of life but fails every report", async () => {
  const desk = new Desk();
  desk.failure = "unavailable";
  for (let key = 0; key < 50; key++) desk.set(`key-${key}`, "one");
  const perMinute: number[] = [];
  for (let minute = 1; minute <= 5; minute++) {
    const before = desk.arrived.length;
    for (let second = 0; second < 60; second++) {
      desk.reporter.retryMissed();
      await desk.clock.advance(1_000);
    }
    perMinute.push(desk.arrived.length - before);
  }
  assert.ok((perMinute[0] ?? 0) <= 20, perMinute.join());
  assert.ok((perMinute[4] ?? 0) <= 5, perMinute.join());
  desk.failure = undefined;
  desk.arrived.length = 0;
  await desk.clock.advance(60_000);
  desk.reporter.retryMissed();
  await desk.clock.advance(63_000);
  assert.equal(new Set(desk.arrived).size, 50);
  await desk.stop();
});

test("a sign of life too soon after the last probe schedules a later one", async () => {
  const desk = new Desk();
  desk.failure = "unavailable";
  for (let key = 0; key < 10; key++) desk.set(`key-${key}`, "one");
  await desk.clock.advance(30_000);
  desk.reporter.retryMissed();
  await desk.clock.settle();
  desk.failure = undefined;
  desk.arrived.length = 0;
  desk.reporter.retryMissed();
  await desk.clock.settle();
  assert.deepEqual(desk.arrived, []);
  await desk.clock.advance(5_000);
  assert.equal(new Set(desk.arrived).size, 10);
  await desk.stop();
});

test("a sign of life does not cut short a wait that the control plane asked for", async () => {
  const desk = new Desk();
  desk.failure = "unavailable";
  desk.retryAfterMs = 300_000;
  desk.set("a", "one");
  await desk.clock.settle();
  desk.reporter.retryMissed();
  await desk.clock.advance(60_000);
  assert.deepEqual(desk.arrived, ["a=one"]);
  await desk.stop();
});

test("a report in flight when the sign of life came does not wait for its old back-off", async () => {
  const desk = new Desk();
  desk.failure = "unavailable";
  desk.set("a", "one");
  // Long enough for a back-off of half a minute and more.
  await desk.clock.advance(200_000);
  const tries = desk.arrived.length;
  desk.slow = true;
  while (desk.arrived.length === tries) await desk.clock.advance(1_000);
  desk.reporter.retryMissed();
  desk.slow = false;
  desk.failure = undefined;
  desk.endSlow();
  await desk.clock.advance(5_000);
  assert.equal(desk.arrived.length, tries + 2);
  assert.equal(desk.reporter.dueCount, 0);
  await desk.stop();
});
