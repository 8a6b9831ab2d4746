// A real log that keeps its lines, for tests of what is logged.
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { createLog, type Log } from "../../src/telemetry/log.ts";

export type LogLine = Readonly<Record<string, unknown>>;

export interface KeptLog {
  readonly log: Log;
  readonly lines: readonly LogLine[];
  /** The lines with this message. */
  of(message: string): readonly LogLine[];
}

export function createKeptLog(sampling = { rate: 1, slowThresholdMs: 1_000 }): KeptLog {
  const lines: LogLine[] = [];
  const log = createLog(
    { level: "info", instance: { id: "ins_test", region: "local", version: "0.0.0" }, sampling },
    {
      write: (line) => void lines.push(JSON.parse(line)),
      random: createSeededRandom(1),
      clock: createSystemClock(),
    },
  );
  return { log, lines, of: (message) => lines.filter(({ msg }) => msg === message) };
}
