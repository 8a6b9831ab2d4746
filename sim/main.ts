// `make sim`: runs seeds until the time is over or an invariant is violated, or exhaustive plans. Prints a line of progress,
// and for a violation the invariant, the last steps, a smaller plan that still violates it, and the command that repeats it.
import type { AnyKind } from "../src/kinds/kinds.ts";
import { type Plan, type PlanFault, plansOf, runStory } from "./plans.ts";
import { type PlannedEvent, runSeed, type SeedOutcome } from "./run-seed.ts";
import { stories } from "./scenarios.ts";
import { shrinkPlan } from "./shrink.ts";
import { loadKinds } from "./sim-agent.ts";

const hourMs = 3_600_000;
const shrinkRunsMax = 120;
const names = ["seed", "from", "hours", "for", "trace", "all", "only", "plans", "plan", "shrink"] as const;
type Named = Readonly<Partial<Record<(typeof names)[number], string>>>;

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: hourMs };

function parseArgs(args: readonly string[]): Named {
  const named: Partial<Record<string, string>> = {};
  for (const arg of args) {
    const [name = "", value] = arg.split(/=(.*)/s, 2);
    if (value === undefined || !names.some((known) => known === name))
      throw new Error(`unknown argument ${arg}: use ${names.map((known) => `${known}=`).join(", ")}`);
    named[name] = value;
  }
  return named;
}

function durationMs(text = ""): number {
  const [, amount, unit = "s"] = /^(\d+)([smh]?)$/.exec(text) ?? [];
  return amount === undefined ? Number.POSITIVE_INFINITY : Number(amount) * (units[unit || "s"] ?? 1_000);
}

function eventLine({ index, atMs, kind, name }: PlannedEvent): string {
  return `  ${(atMs / 1000).toFixed(1)} ${kind}: ${name} (${index})`;
}

function describe({ seed, violation, lastLines }: SeedOutcome): string {
  return [
    `\nseed ${seed}: ${violation?.invariant} is violated after ${Math.round((violation?.atMs ?? 0) / 1000)} simulated seconds`,
    `  ${violation?.what}`,
    "\nthe last steps:",
    ...lastLines.map((line) => `  ${line}`),
  ].join("\n");
}

async function describeShrunk(kinds: readonly AnyKind[], outcome: SeedOutcome): Promise<string> {
  const {
    events,
    outcome: shrunk,
    runs,
  } = await shrinkPlan({ seed: outcome.seed, kinds }, outcome, shrinkRunsMax);
  const only = events.map(({ index }) => index).join(",");
  return [
    `\n${events.length} of ${outcome.plan.length} events violate it too (${runs} runs): ${shrunk.violation?.what}`,
    ...events.map(eventLine),
    `\nrepeat it: make sim seed=${outcome.seed} only=${only || "none"}`,
    `all of it: make sim seed=${outcome.seed}\nall steps: add trace=1`,
  ].join("\n");
}

function onTraceLineOf({ trace }: Named) {
  return trace === "1" ? (line: string) => console.log(line) : undefined;
}

/** The number of violations. */
async function runSeeds(kinds: readonly AnyKind[], args: Named): Promise<number> {
  const hoursMax = args.hours === undefined ? Number.POSITIVE_INFINITY : Number(args.hours);
  const startMs = Date.now();
  const onTraceLine = onTraceLineOf(args);
  const only =
    args.only === undefined ? undefined : new Set(args.only.split(",").map((index) => Number(index)));
  let [seeds, steps, simulatedMs, faults, violations] = [0, 0, 0, 0, 0];
  for (let seed = Number(args.seed ?? args.from ?? 1); ; seed++) {
    const outcome = await runSeed({
      seed,
      kinds,
      ...(only && { only }),
      ...(onTraceLine && { onTraceLine }),
    });
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
      if (only === undefined && args.shrink !== "0") console.log(await describeShrunk(kinds, outcome));
      if (args.all !== "1") break;
    }
    const isOver = simulatedMs >= hoursMax * hourMs || realMs >= durationMs(args.for);
    if (args.seed !== undefined || isOver) break;
  }
  return violations;
}

const nameOf = ({ story, index, fault }: Plan) => `${story}:${index}:${fault}`;

async function runOnePlan(kinds: readonly AnyKind[], args: Named): Promise<number> {
  const [story = "", index, fault] = (args.plan ?? "").split(":");
  const plan = index === undefined ? undefined : { index: Number(index), fault: fault as PlanFault };
  const outcome = await runStory(kinds, story, plan, onTraceLineOf(args));
  const { violation, hash, hit, messages } = outcome;
  const what = plan === undefined ? `${messages.length} messages` : (hit ?? "hit nothing");
  console.log(`plan ${args.plan} ${hash}: ${what}`);
  if (violation === undefined) return 0;
  for (const line of outcome.lastLines) console.log(`  ${line}`);
  console.log(`${violation.invariant}: ${violation.what}`);
  return 1;
}

/** Every plan of every story, or each `every`th. */
async function runPlans(kinds: readonly AnyKind[], args: Named): Promise<number> {
  const every = args.plans === "all" ? 1 : Number(args.plans);
  if (!(every >= 1)) throw new Error(`plans=${args.plans}: use plans=all, or a number for each n-th plan`);
  let [runs, missed, violations] = [0, 0, 0];
  for (const story of Object.keys(stories)) {
    const plans = plansOf(story, await runStory(kinds, story)).filter((_, index) => index % every === 0);
    for (const plan of plans) {
      const { violation, hit } = await runStory(kinds, story, plan);
      runs += 1;
      if (hit === undefined) missed += 1;
      if (violation === undefined) continue;
      violations += 1;
      console.log(`${violation.invariant} is violated: ${violation.what}\n  ${hit}`);
      console.log(`  repeat it: make sim plan='${nameOf(plan)}' trace=1`);
    }
    console.log(`story "${story}": ${runs} plans so far, ${missed} hit nothing, ${violations} violations`);
  }
  return violations;
}

async function main(args: Named): Promise<number> {
  const kinds = await loadKinds();
  if (args.plan !== undefined) return runOnePlan(kinds, args);
  if (args.plans !== undefined) return runPlans(kinds, args);
  return runSeeds(kinds, args);
}

process.exitCode = (await main(parseArgs(process.argv.slice(2)))) > 0 ? 1 : 0;
