// The log of a long-running process: JSON lines on standard output.
import { createSystemClock } from "../../concurrency/clock.ts";
import { createSystemRandom } from "../../concurrency/random.ts";
import type { ObservabilityConfig } from "../../config/config.ts";
import { createLog, type Log } from "../../telemetry/log.ts";
import type { Output } from "../io.ts";

const backlogBytesMax = 1024 * 1024;

export interface ProcessLogOptions {
  readonly instance: { readonly id: string; readonly region: string; readonly version: string };
  readonly logging: ObservabilityConfig["logging"];
}

export function createProcessLog({ instance, logging }: ProcessLogOptions, stdout: Output): Log {
  const { level, sampleRate, slowThresholdMs } = logging;
  return createLog(
    { level, instance, sampling: { rate: sampleRate, slowThresholdMs } },
    {
      clock: createSystemClock(),
      random: createSystemRandom(),
      // If the reader stalls, drop (and count) lines rather than buffer them.
      write(line) {
        if (stdout.backlogBytes > backlogBytesMax) throw new Error("standard output is not being read");
        stdout.write(line);
      },
    },
  );
}
