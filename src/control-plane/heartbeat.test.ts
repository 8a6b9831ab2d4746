import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { runHeartbeat } from "./heartbeat.ts";

test("a heartbeat is sent at once and every 30 s, even if one fails or is slow, until it is stopped", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const beatsAt: number[] = [];
  const running = runHeartbeat(
    async () => {
      beatsAt.push(clock.nowMs());
      if (beatsAt.length === 2) throw new Error("no answer");
      if (beatsAt.length === 3) await new Promise<void>((resolve) => void clock.setTimer(8_000, resolve));
    },
    { clock },
    stop.signal,
  );
  await clock.advance(125_000);
  assert.deepEqual(beatsAt, [0, 30_000, 60_000, 90_000, 120_000]);
  stop.abort();
  await running;
  assert.equal(clock.timerCount, 0);
});

test("a stop during a heartbeat ends it cleanly", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const hanging = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const running = runHeartbeat(hanging, { clock }, stop.signal);
  await clock.settle();
  stop.abort();
  await running;
  assert.equal(clock.timerCount, 0);
});
