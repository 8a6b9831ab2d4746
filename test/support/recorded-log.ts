// A real log whose lines are kept, for the few tests of what a person reads there.
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { createLog, type Log } from "../../src/telemetry/log.ts";
import { FakeClock } from "./fake-clock.ts";

export type LoggedLine = Readonly<Record<string, unknown>>;

/** Warnings and errors, in order. */
export function createRecordedLog(): { readonly log: Log; readonly lines: readonly LoggedLine[] } {
  const lines: LoggedLine[] = [];
  const log = createLog(
    {
      level: "warn",
      instance: { id: "ins_test", region: "local", version: "0.0.0" },
      sampling: { rate: 0, slowThresholdMs: 0 },
    },
    { write: (line) => lines.push(JSON.parse(line)), random: createSeededRandom(1), clock: new FakeClock() },
  );
  return { log, lines };
}
