import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { checkTimeoutMs, runChecks } from "./checks.ts";
import { ok } from "./finding.ts";

const never = new AbortController().signal;
const good = { name: "good", run: async () => [ok("good", "is so")] };
const broken = {
  name: "broken",
  run: async () => {
    throw new Error("it broke", { cause: new Error("of old age") });
  },
};
const silent = { name: "silent", run: () => new Promise<never>(() => undefined) };

test("a check that fails or hangs does not affect the others", async () => {
  const clock = new FakeClock();
  const running = runChecks([silent, broken, good], { clock }, never);
  await clock.advance(checkTimeoutMs);
  const findings = await running;
  assert.deepEqual(
    findings.map(({ name, state, finding }) => [name, state, finding]),
    [
      ["silent", "problem", "no response within 5 s"],
      ["broken", "problem", "it broke: of old age"],
      ["good", "ok", "is so"],
    ],
  );
  assert.ok(findings.every(({ state, remedy }) => state === "ok" || remedy !== ""));
});

test("an abort is not a finding", async () => {
  const stop = new AbortController();
  const running = runChecks([silent, good], { clock: new FakeClock() }, stop.signal);
  stop.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
});
