// A real log whose lines go nowhere, for tests: they look at the world, not at logs.
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { createLog, type Log } from "../../src/telemetry/log.ts";

export function createQuietLog(): Log {
  return createLog(
    {
      level: "error",
      instance: { id: "ins_test", region: "local", version: "0.0.0" },
      sampling: { rate: 0, slowThresholdMs: 0 },
    },
    { write: () => undefined, random: createSeededRandom(1), clock: createSystemClock() },
  );
}
