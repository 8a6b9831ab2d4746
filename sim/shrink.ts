// Finds a small part of a seed's plan that still violates the invariant: leaves out half of the events, then quarters, down
// to single ones, and keeps what is needed. Each event has random choices of its own, so leaving one out changes no other.
import { type PlannedEvent, runSeed, type SeedOptions, type SeedOutcome } from "./run-seed.ts";

export interface ShrunkPlan {
  readonly events: readonly PlannedEvent[];
  /** Of the run with these events only. */
  readonly outcome: SeedOutcome;
  readonly runs: number;
}

export async function shrinkPlan(
  options: Omit<SeedOptions, "only" | "onTraceLine">,
  outcome: SeedOutcome,
  runsMax: number,
  run: typeof runSeed = runSeed,
): Promise<ShrunkPlan> {
  const { violation } = outcome;
  if (violation === undefined) throw new Error(`seed ${outcome.seed} violates nothing`);
  let events = outcome.plan.filter(({ atMs }) => atMs <= violation.atMs);
  let best = outcome;
  let runs = 0;
  for (let size = Math.ceil(events.length / 2); size >= 1 && runs < runsMax; size = shrunkSize(size)) {
    for (let start = 0; start < events.length && runs < runsMax; ) {
      const fewer = [...events.slice(0, start), ...events.slice(start + size)];
      const only = new Set(fewer.map(({ index }) => index));
      runs += 1;
      const tried = await run({ ...options, only });
      if (tried.violation?.invariant === violation.invariant) {
        events = fewer;
        best = tried;
      } else start += size;
    }
  }
  return { events, outcome: best, runs };
}

function shrunkSize(size: number): number {
  return size === 1 ? 0 : Math.ceil(size / 2);
}
