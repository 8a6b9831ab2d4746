import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { CircuitBreaker } from "../concurrency/circuit-breaker.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { type ControlPlaneCode, ControlPlaneError } from "../control-plane/error.ts";
import { isOutage } from "./classify.ts";
import { type Observation, Reporter, type SentReport } from "./reporter.ts";

class ReporterSetup {
  readonly clock = new FakeClock();
  readonly arrived: string[] = [];
  readonly sent: SentReport[] = [];
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
      isDeleted: () => true,
      onError: (_, error) => assert.fail(String(error)),
      onSent: (sent) => void this.sent.push(sent),
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
  const setup = new ReporterSetup();
  for (let change = 1; change <= 100; change++) setup.set("a", `${change}`);
  await setup.clock.settle();
  setup.reporter.changed("a");
  await setup.clock.settle();
  assert.deepEqual(setup.arrived, ["a=100"]);
  await setup.stop();
});

test("a failed report is retried until it is delivered", async () => {
  const setup = new ReporterSetup();
  setup.failure = "unauthenticated";
  setup.set("a", "one");
  await setup.clock.advance(10_000);
  const tries = setup.arrived.length;
  assert.ok(tries > 1);
  setup.failure = undefined;
  await setup.clock.advance(60_000);
  assert.equal(setup.arrived.length, tries + 1);
  await setup.stop();
});

test("a rejected report is not repeated until the state changes", async () => {
  const setup = new ReporterSetup();
  setup.failure = "not_found";
  setup.set("a", "one");
  await setup.clock.advance(120_000);
  assert.deepEqual(setup.arrived, ["a=one"]);
  setup.set("a", "two");
  await setup.clock.settle();
  assert.deepEqual(setup.arrived, ["a=one", "a=two"]);
  await setup.stop();
});

test("after a few failures the breaker opens, and everything is delivered after the outage", async () => {
  const setup = new ReporterSetup();
  setup.failure = "unavailable";
  for (let key = 0; key < 50; key++) setup.set(`key-${key}`, "one");
  await setup.clock.advance(30_000);
  assert.equal(setup.breaker.state, "open");
  assert.ok(setup.arrived.length <= 6, `${setup.arrived.length} calls`);
  setup.failure = undefined;
  setup.arrived.length = 0;
  await setup.clock.advance(300_000);
  assert.equal(new Set(setup.arrived).size, 50);
  assert.equal(setup.arrived.length, 50);
  await setup.stop();
});

test("a report that hangs delays no other", async () => {
  const setup = new ReporterSetup();
  setup.hanging.add("a");
  setup.set("a", "one");
  for (const key of ["b", "c", "d"]) setup.set(key, "one");
  await setup.clock.settle();
  assert.deepEqual(setup.arrived.sort(), ["a=one", "b=one", "c=one", "d=one"]);
  await setup.stop();
});

test("every report is sent again within ten minutes, spread over time", async () => {
  const setup = new ReporterSetup();
  for (let key = 0; key < 30; key++) setup.set(`key-${key}`, "one");
  await setup.clock.settle();
  const perMinute: number[] = [];
  for (let minute = 1; minute <= 10; minute++) {
    const before = setup.arrived.length;
    await setup.clock.advance(60_000);
    setup.reporter.resendDue();
    await setup.clock.settle();
    perMinute.push(setup.arrived.length - before);
  }
  assert.equal(setup.arrived.length, 60);
  assert.ok(Math.max(...perMinute) < 15, perMinute.join());
  await setup.stop();
});

test("a deletion is reported once, if the object was reported before or its deletion was wanted", async () => {
  const setup = new ReporterSetup();
  setup.reporter.changed("never-seen");
  setup.deletesWanted.add("ordered");
  setup.reporter.changed("ordered");
  setup.set("known", "one");
  await setup.clock.settle();
  setup.world.delete("known");
  setup.reporter.changed("known");
  await setup.clock.advance(1_200_000);
  setup.reporter.resendDue();
  await setup.clock.settle();
  assert.deepEqual(setup.arrived.sort(), ["known=gone", "known=one", "ordered=gone"]);
  await setup.stop();
});

test("undelivered reports are sent at once after a sign of life", async () => {
  const setup = new ReporterSetup();
  setup.failure = "unavailable";
  for (let key = 0; key < 50; key++) setup.set(`key-${key}`, "one");
  await setup.clock.advance(30_000);
  assert.equal(setup.breaker.state, "open");
  setup.failure = undefined;
  setup.arrived.length = 0;
  setup.reporter.retryMissed();
  // Ten are the breaker's probes; the others were turned away meanwhile and wait for a second or two.
  await setup.clock.advance(3_000);
  assert.equal(new Set(setup.arrived).size, 50);
  assert.equal(setup.breaker.state, "closed");
  setup.arrived.length = 0;
  setup.reporter.retryMissed();
  await setup.clock.settle();
  assert.deepEqual(setup.arrived, [], "nothing was missed any more");
  await setup.stop();
});

test("probes back off if the control plane gives signs of life but fails every report", async () => {
  const setup = new ReporterSetup();
  setup.failure = "unavailable";
  for (let key = 0; key < 50; key++) setup.set(`key-${key}`, "one");
  const perMinute: number[] = [];
  for (let minute = 1; minute <= 5; minute++) {
    const before = setup.arrived.length;
    for (let second = 0; second < 60; second++) {
      setup.reporter.retryMissed();
      await setup.clock.advance(1_000);
    }
    perMinute.push(setup.arrived.length - before);
  }
  assert.ok((perMinute[0] ?? 0) <= 20, perMinute.join());
  assert.ok((perMinute[4] ?? 0) <= 5, perMinute.join());
  setup.failure = undefined;
  setup.arrived.length = 0;
  await setup.clock.advance(60_000);
  setup.reporter.retryMissed();
  await setup.clock.advance(63_000);
  assert.equal(new Set(setup.arrived).size, 50);
  await setup.stop();
});

test("a sign of life too soon after the last probe schedules a later one", async () => {
  const setup = new ReporterSetup();
  setup.failure = "unavailable";
  for (let key = 0; key < 10; key++) setup.set(`key-${key}`, "one");
  await setup.clock.advance(30_000);
  setup.reporter.retryMissed();
  await setup.clock.settle();
  setup.failure = undefined;
  setup.arrived.length = 0;
  setup.reporter.retryMissed();
  await setup.clock.settle();
  assert.deepEqual(setup.arrived, []);
  await setup.clock.advance(5_000);
  assert.equal(new Set(setup.arrived).size, 10);
  await setup.stop();
});

test("a sign of life does not cut short a wait that the control plane asked for", async () => {
  const setup = new ReporterSetup();
  setup.failure = "unavailable";
  setup.retryAfterMs = 300_000;
  setup.set("a", "one");
  await setup.clock.settle();
  setup.reporter.retryMissed();
  await setup.clock.advance(60_000);
  assert.deepEqual(setup.arrived, ["a=one"]);
  await setup.stop();
});

test("a report in flight when the sign of life came does not wait for its old back-off", async () => {
  const setup = new ReporterSetup();
  setup.failure = "unavailable";
  setup.set("a", "one");
  // Long enough for a back-off of half a minute and more.
  await setup.clock.advance(200_000);
  const tries = setup.arrived.length;
  setup.slow = true;
  while (setup.arrived.length === tries) await setup.clock.advance(1_000);
  setup.reporter.retryMissed();
  setup.slow = false;
  setup.failure = undefined;
  setup.endSlow();
  await setup.clock.advance(5_000);
  assert.equal(setup.arrived.length, tries + 2);
  await setup.stop();
});

test("every report that was sent is observed once, with its duration and its error", async () => {
  const setup = new ReporterSetup();
  setup.set("a", "1");
  await setup.clock.advance(1);
  setup.failure = "unavailable";
  setup.set("a", "2");
  await setup.clock.advance(1);
  setup.failure = undefined;
  await setup.clock.advance(2_000);
  assert.deepEqual(
    setup.sent.map(({ key, change, error }) => [key, change, (error as ControlPlaneError | undefined)?.code]),
    [
      ["a", "update", undefined],
      ["a", "update", "unavailable"],
      ["a", "update", undefined],
    ],
  );
  await setup.stop();
});
