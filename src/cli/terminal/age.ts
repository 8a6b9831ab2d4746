// Formats a time as an age or in UTC.
import { utcText } from "../../concurrency/clock.ts";

const units: readonly (readonly [letter: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** `3s`, `12m`, `5h`, `2d`; empty for 0. Clocks differ, so a time in the future counts as now. */
export function ageOf(atMs: bigint | number, nowMs: number): string {
  if (Number(atMs) === 0) return "";
  const ms = Math.max(0, nowMs - Number(atMs));
  const [letter, unitMs] = units.find(([, each]) => ms >= each) ?? ["s", 1_000];
  return `${Math.floor(ms / unitMs)}${letter}`;
}

/** What `ageOf` has written, in milliseconds. */
export function parseAge(text: string): number | undefined {
  const [, count, letter] = /^(\d+)([dhms])$/.exec(text) ?? [];
  const [, unitMs = Number.NaN] = units.find(([each]) => each === letter) ?? [];
  return count === undefined ? undefined : Number(count) * unitMs;
}

/** The time in UTC; empty for 0. */
export function momentOf(atMs: bigint | number): string {
  return Number(atMs) === 0 ? "" : utcText(Number(atMs));
}
