// What a check has to say: how things stand, and what to do where they do not stand well.

export type FindingState =
  /** As it should be. */
  | "ok"
  /** Works, but not for long or not for everything. */
  | "warning"
  /** krane cannot do its work. */
  | "problem"
  /** Not known: it cannot be seen from here, or something else has to be mended first. */
  | "skipped";

export interface Finding {
  /** What was looked at. */
  readonly name: string;
  readonly state: FindingState;
  /** What was found, on one line. */
  readonly finding: string;
  /** What to do about it; empty where there is nothing to do. */
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
