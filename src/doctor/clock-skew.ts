// Measures how far another machine's clock is from this one. Each side checks the validity of tokens and certificates
// by its own clock.
import { type Finding, ok, problem, skipped, warning } from "./finding.ts";

export interface DatedResponse {
  /** The Date header; whole seconds. */
  readonly date: string | undefined;
  /** By this machine's clock: when the request was sent and the response received. */
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

const warningMs = 5_000;
const problemMs = 30_000;

/** `owner`: whose clock it is. */
export function judgeClock(name: string, owner: string, response: DatedResponse): Finding {
  const skewMs = clockSkewMs(response);
  if (skewMs === undefined) return skipped(name, `${owner} does not send its time`);
  const seconds = Math.round(Math.abs(skewMs) / 1_000);
  const finding = `the clock of ${owner} is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} this machine's`;
  const remedy =
    "synchronize both clocks with NTP; otherwise tokens and certificates expire too early or too late";
  if (Math.abs(skewMs) >= problemMs) return problem(name, finding, remedy);
  if (Math.abs(skewMs) >= warningMs) return warning(name, finding, remedy);
  return ok(name, `the clock of ${owner} agrees with this machine's`);
}

/** The smallest skew that explains the response; 0 if none is needed, undefined without a valid date. */
export function clockSkewMs({ date, sentAtMs, receivedAtMs }: DatedResponse): number | undefined {
  // biome-ignore lint/style/noRestrictedGlobals: it parses a date from a server; the current time comes from the clock.
  const writtenMs = Date.parse(date ?? "");
  if (Number.isNaN(writtenMs)) return undefined;
  // It was written between the two times, and up to a second later than it says.
  const latestMs = writtenMs + 999;
  if (latestMs < sentAtMs) return latestMs - sentAtMs;
  return writtenMs > receivedAtMs ? writtenMs - receivedAtMs : 0;
}
