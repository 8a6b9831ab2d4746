// Turns a line of the log into text for a person at a terminal. Pipes and files get the JSON.
import { printable } from "../../telemetry/scrub.ts";
import type { Paint, Tone } from "../terminal/colours.ts";

const tones: Readonly<Record<string, Tone>> = { debug: "faint", warn: "busy", error: "bad" };
// Characters that need no quotes.
const plainValue = /^[\w./:@+-]+$/;

/** For example `19:20:01.123 info  reconciled key=krane-dev/web-1 outcome=applied`. */
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
