// The log of a long-running process: JSON lines, or lines for people if the output is a terminal.
import { createSystemClock } from "../../concurrency/clock.ts";
import { createSystemRandom } from "../../concurrency/random.ts";
import type { ObservabilityConfig } from "../../config/config.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { createLog, type Log } from "../../telemetry/log.ts";
import type { Output } from "../io.ts";
import { createPaint } from "../terminal/colours.ts";
import { readableLine } from "./readable-line.ts";

const backlogBytesMax = 1024 * 1024;

export interface ProcessLogOptions {
  readonly instance: { readonly id: string; readonly region: string; readonly version: string };
  readonly logging: ObservabilityConfig["logging"];
}

export function createProcessLog(
  { instance, logging }: ProcessLogOptions,
  output: Output,
  env: ProcessEnv,
): Log {
  const { level, sampleRate, slowThresholdMs } = logging;
  const paint = createPaint(output, env);
  return createLog(
    { level, instance, sampling: { rate: sampleRate, slowThresholdMs } },
    {
      clock: createSystemClock(),
      random: createSystemRandom(),
      // If the reader stalls, drop (and count) lines rather than buffer them.
      write(line) {
        if (output.backlogBytes > backlogBytesMax) throw new Error("the output is not being read");
        output.write(output.isTerminal ? readableLine(line, paint) : line);
      },
    },
  );
}
