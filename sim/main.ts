// `make sim`: runs seeds until the time is over or an invariant is violated. Prints a line of progress, and for a violation
// the invariant, the last steps and the command that repeats it.

import { runSeed, type SeedOutcome } from "./run-seed.ts";
import { loadKinds } from "./sim-agent.ts";

const hourMs = 3_600_000;

interface Args {
  /** Only this seed. */
  readonly seed?: number;
  /** The first of many seeds. */
  readonly from: number;
  /** Simulated agent-hours after which no further seed begins. */
  readonly hours: number;
  /** Real time after which no further seed begins. */
  readonly forMs: number;
  /** Goes on after a violation. */
  readonly goesOn: boolean;
  readonly showsTrace: boolean;
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: hourMs };

function parseArgs(args: readonly string[]): Args {
  const named = new Map(
    args.filter((arg) => arg.includes("=")).map((arg) => arg.split("=", 2) as [string, string]),
  );
  const unknown = [...named.keys()].filter(
    (name) => !["seed", "from", "hours", "for", "trace", "all"].includes(name),
  );
  if (unknown.length > 0)
    throw new Error(`unknown argument ${unknown[0]}: use seed=, from=, hours=, for=, trace=1 or all=1`);
  const number = (name: string) => (named.get(name) ? Number(named.get(name)) : undefined);
  const [, amount, unit = "s"] = /^(\d+)([smh]?)$/.exec(named.get("for") ?? "") ?? [];
  const seed = number("seed");
  return {
    ...(seed !== undefined && { seed }),
    from: number("from") ?? 1,
    hours: number("hours") ?? Number.POSITIVE_INFINITY,
    forMs: amount === undefined ? Number.POSITIVE_INFINITY : Number(amount) * (units[unit || "s"] ?? 1_000),
    goesOn: named.get("all") === "1",
    showsTrace: named.get("trace") === "1",
  };
}

function describe({ seed, violation, lastLines, plan }: SeedOutcome): string {
  const events = plan.filter(({ atMs }) => atMs <= (violation?.atMs ?? 0)).slice(-12);
  return [
    `\nseed ${seed}: ${violation?.invariant} is violated after ${Math.round((violation?.atMs ?? 0) / 1000)} simulated seconds`,
    `  ${violation?.what}`,
    "\nthe last events of the plan:",
    ...events.map(({ atMs, kind, name }) => `  ${(atMs / 1000).toFixed(1)} ${kind}: ${name}`),
    "\nthe last steps:",
    ...lastLines.map((line) => `  ${line}`),
    `\nrepeat it: make sim seed=${seed}\nall steps: make sim seed=${seed} trace=1`,
  ].join("\n");
}

/** The number of violations. */
async function main(args: Args): Promise<number> {
  const kinds = await loadKinds();
  const startMs = Date.now();
  let [seeds, steps, simulatedMs, faults, violations] = [0, 0, 0, 0, 0];
  for (let seed = args.seed ?? args.from; ; seed++) {
    const onTraceLine = args.showsTrace ? { onTraceLine: (line: string) => console.log(line) } : {};
    const outcome = await runSeed({ seed, kinds, ...onTraceLine });
    seeds += 1;
    steps += outcome.steps;
    simulatedMs += 2 * outcome.simulatedMs;
    faults += outcome.faultsInjected;
    const realMs = Math.max(1, Date.now() - startMs);
    const perSecond = Math.round((1000 * steps) / realMs);
    console.log(
      `seed ${seed} ${outcome.hash}: ${seeds} seeds, ${(simulatedMs / hourMs).toFixed(1)} agent-hours, ${perSecond} steps/s, ${faults} faults, ${violations} violations`,
    );
    if (outcome.violation !== undefined) {
      violations += 1;
      console.log(describe(outcome));
      if (!args.goesOn) break;
    }
    if (args.seed !== undefined || simulatedMs >= args.hours * hourMs || realMs >= args.forMs) break;
  }
  return violations;
}

process.exitCode = (await main(parseArgs(process.argv.slice(2)))) > 0 ? 1 : 0;
