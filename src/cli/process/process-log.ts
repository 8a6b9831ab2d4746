// The log of a long-running process: JSON lines, or lines for people if the output is a terminal.
import { createSystemClock } from "../../concurrency/clock.ts";
import { createSystemRandom } from "../../concurrency/random.ts";
import type { ObservabilityConfig } from "../../config/config.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { createLog, type Log } from "../../telemetry/log.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Output } from "../io.ts";
import { createPaint, type Paint, type Tone } from "../terminal/colours.ts";

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

const tones: Readonly<Record<string, Tone>> = { debug: "faint", warn: "busy", error: "bad" };
// Characters that need no quotes.
const plainValue = /^[\w./:@+-]+$/;

/** A line for a person at a terminal, for example `19:20:01.123 info  reconciled key=krane-dev/web-1 outcome=applied`. */
export function readableLine(json: string, paint: Paint): string {
  const { level, time, msg, instance: _, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const clock = String(time).slice("2026-01-01T".length, -"Z".length);
  const word = paint(String(level).padEnd("error".length), tones[String(level)]);
  const parts = Object.entries(fields).flatMap(([name, value]) => pairs(name, value));
  const shown = parts.map(([name, value]) => `${paint(`${name}=`, "faint")}${value}`);
  return `${[paint(clock, "faint"), word, printable(String(msg)), ...shown].join(" ")}\n`;
}

function pairs(name: string, value: unknown): readonly (readonly [string, string])[] {
  if (typeof value === "object" && value !== null)
    return Object.entries(value).flatMap(([inner, one]) =>
      // Twelve frames on one line help nobody; the JSON has them.
      inner === "stack" ? [] : pairs(`${name}.${inner}`, one),
    );
  const text = printable(String(value));
  return [[name, plainValue.test(text) ? text : JSON.stringify(text)]];
}
