// The result of a check: a state, what was found, and the remedy.

export type FindingState =
  /** Works. */
  | "ok"
  /** Works, but not for long, or not for everything. */
  | "warning"
  /** krane cannot work. */
  | "problem"
  /** Unknown: it cannot be checked from here, or another problem must be fixed first. */
  | "skipped";

export interface Finding {
  /** What was checked. */
  readonly name: string;
  readonly state: FindingState;
  /** What was found, on one line. */
  readonly finding: string;
  /** What to do about it; empty if nothing. */
  readonly remedy: string;
}

export function ok(name: string, finding: string): Finding {
  return { name, state: "ok", finding, remedy: "" };
}

export function warning(name: string, finding: string, remedy: string): Finding {
  return { name, state: "warning", finding, remedy };
}

export function problem(name: string, finding: string, remedy: string): Finding {
  return { name, state: "problem", finding, remedy };
}

export function skipped(name: string, finding: string, remedy = ""): Finding {
  return { name, state: "skipped", finding, remedy };
}
