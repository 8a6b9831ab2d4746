import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { retryHintMs } from "../control-plane/error.ts";
import { StreamAdmission } from "./stream-admission.ts";

/** The wait that was asked for; undefined when it was let in. */
function ask(admission: StreamAdmission, openCount = 0): number | undefined {
  try {
    admission.admit(openCount);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ConnectError && error.code === Code.Unavailable);
    return retryHintMs(error) ?? assert.fail("there is no hint");
  }
}

test("a fleet that honours its hints is inside within the time that the rate allows, and never faster", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 600 }),
      fc.integer({ min: 5, max: 100 }),
      async (size, perSecond) => {
        // Agents wait a minute at most, so a line that is longer has its end all at once.
        const fleet = Math.min(size, 50 * perSecond);
        const clock = new FakeClock();
        const admission = new StreamAdmission({ perSecond, openMax: 10_000 }, { clock });
        const admittedAtMs: number[] = [];
        const come = () => {
          const waitMs = ask(admission);
          if (waitMs === undefined) admittedAtMs.push(clock.nowMs());
          else clock.setTimer(waitMs, come);
        };
        for (let agent = 0; agent < fleet; agent++) come();
        await clock.advance(300_000);
        assert.equal(admittedAtMs.length, fleet);
        const lastMs = Math.max(...admittedAtMs);
        assert.ok(
          lastMs <= (fleet / perSecond) * 1_000 + 2_000,
          `${fleet} at ${perSecond}/s took ${lastMs} ms`,
        );
        for (const atMs of admittedAtMs) {
          const within = admittedAtMs.filter((other) => other >= atMs && other < atMs + 1_000).length;
          assert.ok(within <= 2 * perSecond, `${within} within a second`);
        }
      },
    ),
    { numRuns: 20 },
  );
});

test("a server that is full sends newcomers away, and takes them when there is room", () => {
  const admission = new StreamAdmission({ perSecond: 10, openMax: 3 }, { clock: new FakeClock() });
  assert.equal(ask(admission, 3), 30_000);
  assert.equal(ask(admission, 2), undefined);
});

test("every refusal is counted", () => {
  let refused = 0;
  const deps = { clock: new FakeClock(), onRefused: () => void refused++ };
  const admission = new StreamAdmission({ perSecond: 2, openMax: 100 }, deps);
  for (let stream = 0; stream < 5; stream++) ask(admission);
  assert.equal(refused, 3);
});
