// How far another clock is from this one. Tokens and certificates are valid between two times, and which time it is
// each side decides by its own clock.
import { type Finding, ok, problem, skipped, warning } from "./finding.ts";

export interface DatedAnswer {
  /** The Date header; whole seconds. */
  readonly date: string | undefined;
  /** By this clock: when the question was sent, and when the answer was there. */
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

const warningMs = 5_000;
const problemMs = 30_000;

/** `owner`: whose clock it is. */
export function judgeClock(name: string, owner: string, answer: DatedAnswer): Finding {
  const skewMs = clockSkewMs(answer);
  if (skewMs === undefined) return skipped(name, `${owner} does not say what time it is`);
  const seconds = Math.round(Math.abs(skewMs) / 1_000);
  const finding = `the clock of ${owner} is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} the one here`;
  const remedy =
    "let both machines keep time by NTP; tokens and certificates are refused too early or too late";
  if (Math.abs(skewMs) >= problemMs) return problem(name, finding, remedy);
  if (Math.abs(skewMs) >= warningMs) return warning(name, finding, remedy);
  return ok(name, `${owner} and this machine agree on the time`);
}

/** The least skew that explains the answer; 0 where none is needed. */
export function clockSkewMs({ date, sentAtMs, receivedAtMs }: DatedAnswer): number | undefined {
  // biome-ignore lint/style/noRestrictedGlobals: it reads a time that a server wrote; the time here comes from the clock.
  const writtenMs = Date.parse(date ?? "");
  if (Number.isNaN(writtenMs)) return undefined;
  // It was written somewhere between the two, and up to a second later than it says.
  const latestMs = writtenMs + 999;
  if (latestMs < sentAtMs) return latestMs - sentAtMs;
  return writtenMs > receivedAtMs ? writtenMs - receivedAtMs : 0;
}
