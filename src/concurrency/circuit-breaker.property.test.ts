// Random calls, results and time against the properties of any breaker, observed from
// outside: which calls were let through, when, and what the observer got.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { CircuitBreaker, CircuitOpenError, type CircuitState } from "./circuit-breaker.ts";

const limits = { failuresToTrip: 3, windowMs: 500, openMs: 6_000, probes: 4 };
type Result = "success" | "failure" | "neutral";

interface Call {
  readonly phase: Phase;
  end(result: Result): Promise<void>;
}

/** The time between two transitions, and the results of the calls admitted in it. */
interface Phase {
  readonly state: CircuitState;
  readonly sinceMs: number;
  readonly failedAtMs: number[];
  succeeded: number;
  inFlight: number;
}

class Observed {
  readonly clock = new FakeClock();
  readonly calls: Call[] = [];
  private phase: Phase = { state: "closed", sinceMs: 0, failedAtMs: [], succeeded: 0, inFlight: 0 };
  private isAskedToProbe = false;
  readonly breaker = new CircuitBreaker(
    { name: "peer", ...limits },
    {
      clock: this.clock,
      countsAsFailure: (error) => error === "failure",
      observer: { onTransition: (from, to) => this.judgeTransition(from, to) },
    },
  );
  /** The observer must not throw, so its findings are kept for the end. */
  readonly faults: string[] = [];

  /** Starts a call; it is admitted exactly when the phase says so. */
  async call(): Promise<void> {
    let end: ((result: Result) => void) | undefined;
    const ended = this.breaker.execute(
      () =>
        new Promise<void>((resolve, reject) => {
          end = (result) => (result === "success" ? resolve() : reject(result));
        }),
    );
    const phase = this.phase;
    if (end === undefined) {
      const error = await ended.catch((error: unknown) => error);
      assert.ok(error instanceof CircuitOpenError);
      if (error.code === "tripped")
        assert.equal(error.retryAfterMs, phase.sinceMs + limits.openMs - this.clock.nowMs());
      else assert.equal(phase.inFlight + phase.succeeded, limits.probes);
      assert.equal(phase.state, error.code === "tripped" ? "open" : "halfopen");
      assert.ok(error.retryAfterMs > 0);
      return;
    }
    const finish = end;
    assert.notEqual(phase.state, "open", "a call went through an open breaker");
    phase.inFlight += 1;
    if (phase.state === "halfopen")
      assert.ok(phase.inFlight + phase.succeeded <= limits.probes, "more probes than the limit");
    this.calls.push({
      phase,
      end: async (result) => {
        phase.inFlight -= 1;
        if (result === "success") phase.succeeded += 1;
        if (result === "failure") phase.failedAtMs.push(this.clock.nowMs());
        finish(result);
        await ended.catch(() => undefined);
      },
    });
  }

  probe(): void {
    this.isAskedToProbe = true;
    this.breaker.probe();
    this.isAskedToProbe = false;
    // Probes already in flight belong to an earlier phase.
    if (this.phase.state === "halfopen")
      this.phase = { ...this.phase, failedAtMs: [], succeeded: 0, inFlight: 0 };
  }

  /** The state follows from the results of this phase's own calls, and nothing else. */
  judge(): void {
    const { state, sinceMs, failedAtMs, succeeded } = this.phase;
    const nowMs = this.clock.nowMs();
    if (state === "closed") assert.ok(!tripsIn(failedAtMs), "still closed after enough failures");
    if (state === "halfopen") {
      assert.equal(failedAtMs.length, 0, "a failed probe did not open it");
      assert.ok(succeeded < limits.probes, "all probes succeeded and it is not closed");
    }
    const expected = state === "open" && nowMs >= sinceMs + limits.openMs ? "halfopen" : state;
    assert.equal(this.breaker.state, expected);
    assert.deepEqual(this.faults, []);
  }

  private judgeTransition(from: CircuitState, to: CircuitState): void {
    const old = this.phase;
    const nowMs = this.clock.nowMs();
    const earned: Record<string, () => boolean> = {
      "closed > open": () => tripsIn(old.failedAtMs),
      "open > halfopen": () => this.isAskedToProbe || nowMs >= old.sinceMs + limits.openMs,
      "halfopen > open": () => old.failedAtMs.length === 1,
      "halfopen > closed": () => old.succeeded === limits.probes && old.inFlight === 0,
    };
    if (from !== old.state || !earned[`${from} > ${to}`]?.()) this.faults.push(`${from} > ${to} at ${nowMs}`);
    this.phase = { state: to, sinceMs: nowMs, failedAtMs: [], succeeded: 0, inFlight: 0 };
  }
}

function tripsIn(failedAtMs: readonly number[]): boolean {
  return failedAtMs.some((lastMs, index) => {
    const firstMs = failedAtMs[index + 1 - limits.failuresToTrip];
    return firstMs !== undefined && lastMs - firstMs < limits.windowMs;
  });
}

const anyResult = fc.constantFrom<Result>("success", "failure", "neutral");
const anyStep = fc.oneof(
  { weight: 5, arbitrary: fc.record({ calls: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 6, arbitrary: fc.record({ end: fc.nat({ max: 12 }), result: anyResult }) },
  { weight: 2, arbitrary: fc.record({ advanceMs: fc.constantFrom(1, 200, 499, 500) }) },
  { weight: 1, arbitrary: fc.record({ advanceMs: fc.constantFrom(3_000, 5_999, 6_000) }) },
  { weight: 1, arbitrary: fc.constant({ probe: true }) },
);

async function take(step: typeof anyStep extends fc.Arbitrary<infer T> ? T : never, observed: Observed) {
  if ("calls" in step) for (let call = 0; call < step.calls; call++) await observed.call();
  if ("end" in step) await observed.calls.splice(step.end, 1)[0]?.end(step.result);
  if ("probe" in step) observed.probe();
  if ("advanceMs" in step) await observed.clock.advance(step.advanceMs);
}

const anySteps = fc.array(anyStep, { maxLength: 60, size: "max" });

test("under any sequence, probes stay within the limit and only a phase's own results end it", async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, async (steps) => {
      const observed = new Observed();
      for (const step of steps) {
        await take(step, observed);
        observed.judge();
      }
    }),
    { numRuns: 300 },
  );
});

test("after any sequence, a healthy peer closes it after the open time and one run of probes", async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, anyResult, async (steps, lateResult) => {
      const observed = new Observed();
      for (const step of steps) await take(step, observed);
      // Calls that never settle would keep their probes: here they all end, late.
      for (const call of observed.calls.splice(0)) await call.end(lateResult);
      await observed.clock.advance(limits.openMs);
      for (let probe = 0; probe < limits.probes; probe++) {
        assert.notEqual(observed.breaker.state, "open");
        await observed.call();
        await observed.calls.pop()?.end("success");
      }
      assert.equal(observed.breaker.state, "closed");
      observed.judge();
    }),
    { numRuns: 200 },
  );
});
