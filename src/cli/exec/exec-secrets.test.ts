import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../../concurrency/clock.ts";
import { createSeededRandom } from "../../concurrency/random.ts";
import { ExecError } from "./exec-error.ts";
import { fetchSecrets } from "./exec-secrets.ts";

const never = new AbortController().signal;
const question = {
  // Nothing listens there.
  endpoint: "http://127.0.0.1:1",
  tokenPath: "/token",
  blob: new Uint8Array(),
  names: new Set(["A"]),
  deploymentId: "d_1",
  environmentId: "env_1",
};

/** Every wait is over at once, and took its time. */
function createEagerClock(): Clock {
  let nowMs = 0;
  return {
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    setTimer(delayMs, run) {
      nowMs += delayMs;
      const timer = setImmediate(run);
      return { cancel: () => clearImmediate(timer) };
    },
  };
}

async function attemptsWithin(timeoutMs: number, seed: number): Promise<number> {
  let attempts = 0;
  const readTextFile = async () => {
    attempts += 1;
    return "a.b.c";
  };
  const deps = { clock: createEagerClock(), random: createSeededRandom(seed), readTextFile };
  await assert.rejects(fetchSecrets(question, { timeoutMs }, deps, never), (error) => {
    assert.ok(error instanceof ExecError && error.code === "unavailable");
    return true;
  });
  return attempts;
}

test("while krane is unavailable, the first retries come soon, and later ones seldom", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const [soon, all] = [await attemptsWithin(2_000, seed), await attemptsWithin(60_000, seed)];
    assert.ok(soon >= 8, `${soon} attempts within 2 s`);
    assert.ok(all <= 40, `${all} attempts within 1 min`);
  }
});
