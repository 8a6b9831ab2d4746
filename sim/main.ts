// `make sim`: runs seeds until the time is over or an invariant is violated, or exhaustive plans. Prints a line of progress,
// and for a violation the invariant, the last steps, a smaller plan that still violates it, and the command that repeats it.
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { AnyKind } from "../src/kinds/kinds.ts";
import { type Plan, type PlanFault, plansOf, runStory } from "./plans.ts";
import { type PlannedEvent, runSeed, type SeedOutcome } from "./run-seed.ts";
import { stories } from "./scenarios.ts";
import { shrinkPlan } from "./shrink.ts";
import { loadKinds } from "./sim-agent.ts";
import type { Violation } from "./sim-region.ts";
import { runInWorkers, serveTasks } from "./workers.ts";

const hourMs = 3_600_000;
const shrinkRunsMax = 120;
const names = [
  "seed",
  "from",
  "hours",
  "for",
  "seeds",
  "jobs",
  "trace",
  "all",
  "only",
  "acts",
  "plans",
  "plan",
  "shrink",
  "worker",
] as const;
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

async function describeShrunk(kinds: readonly AnyKind[], args: Named, outcome: SeedOutcome): Promise<string> {
  const {
    events,
    outcome: shrunk,
    runs,
  } = await shrinkPlan({ seed: outcome.seed, kinds, acts: actsOf(args) }, outcome, shrinkRunsMax);
  const all = `make sim seed=${outcome.seed}${args.acts === undefined ? "" : ` acts=${args.acts}`}`;
  const only = events.map(({ index }) => index).join(",");
  return [
    `\n${events.length} of ${outcome.plan.length} events violate it too (${runs} runs): ${shrunk.violation?.what}`,
    ...events.map(eventLine),
    `\nrepeat it: ${all} only=${only || "none"}`,
    `all of it: ${all}\nall steps: add trace=1`,
  ].join("\n");
}

function actsOf({ acts = "1" }: Named): number {
  return Number(acts);
}

function onTraceLineOf({ trace }: Named) {
  return trace === "1" ? (line: string) => console.log(line) : undefined;
}

/** What a worker is asked to run. */
type Task = { readonly seed: number; readonly acts: number } | { readonly plan: Plan };

/** Runs the tasks in this process if one core is to be used, else in a worker for each core. */
async function runAll<Outcome>(
  args: Named,
  tasks: Iterable<Task>,
  run: (task: Task) => Promise<unknown>,
  onOutcome: (outcome: Outcome) => boolean,
): Promise<void> {
  const jobs = Number(args.jobs ?? availableParallelism());
  if (jobs > 1) return runInWorkers(fileURLToPath(import.meta.url), jobs, tasks, onOutcome);
  for (const task of tasks) if (!onOutcome((await run(task)) as Outcome)) return;
}

async function runTask(kinds: readonly AnyKind[], task: Task): Promise<SeedOutcome | PlanResult> {
  if ("seed" in task) return runSeed({ ...task, kinds });
  const { violation, hit } = await runStory(kinds, task.plan.story, task.plan);
  return { plan: task.plan, ...(violation && { violation }), ...(hit !== undefined && { hit }) };
}

class Progress {
  private readonly startMs = Date.now();
  private seeds = 0;
  private steps = 0;
  private simulatedMs = 0;
  private faults = 0;
  violations = 0;

  /** Counts the seed, and returns a line about it. */
  add({ seed, hash, steps, simulatedMs, faultsInjected, violation }: SeedOutcome): string {
    this.seeds += 1;
    this.steps += steps;
    this.simulatedMs += 2 * simulatedMs;
    this.faults += faultsInjected;
    if (violation !== undefined) this.violations += 1;
    const perSecond = Math.round((1000 * this.steps) / this.realMs);
    const { seeds, faults, violations } = this;
    return `seed ${seed} ${hash}: ${seeds} seeds, ${this.agentHours.toFixed(1)} agent-hours, ${perSecond} steps/s, ${faults} faults, ${violations} violations`;
  }

  get realMs(): number {
    return Math.max(1, Date.now() - this.startMs);
  }

  get agentHours(): number {
    return this.simulatedMs / hourMs;
  }
}

/** The number of violations. */
async function runSeeds(kinds: readonly AnyKind[], args: Named): Promise<number> {
  const hoursMax = args.hours === undefined ? Number.POSITIVE_INFINITY : Number(args.hours);
  const seedsMax = args.seeds === undefined ? Number.POSITIVE_INFINITY : Number(args.seeds);
  const forMs = durationMs(args.for);
  const progress = new Progress();
  const found: SeedOutcome[] = [];
  await runAll<SeedOutcome>(
    args,
    seedsFrom(args, seedsMax),
    (task) => runTask(kinds, task),
    (outcome) => {
      console.log(progress.add(outcome));
      if (outcome.violation !== undefined) {
        found.push(outcome);
        console.log(describe(outcome));
        if (args.all !== "1") return false;
      }
      return progress.agentHours < hoursMax && progress.realMs < forMs;
    },
  );
  if (args.shrink !== "0")
    for (const outcome of found) console.log(await describeShrunk(kinds, args, outcome));
  return progress.violations;
}

function* seedsFrom(args: Named, count: number): IterableIterator<Task> {
  const first = Number(args.from ?? 1);
  for (let seed = first; seed < first + count; seed++) yield { seed, acts: actsOf(args) };
}

/** The number of violations. */
async function runOneSeed(kinds: readonly AnyKind[], args: Named): Promise<number> {
  const only =
    args.only === undefined ? undefined : new Set(args.only.split(",").map((index) => Number(index)));
  const onTraceLine = onTraceLineOf(args);
  const progress = new Progress();
  const outcome = await runSeed({
    seed: Number(args.seed),
    kinds,
    acts: actsOf(args),
    ...(only && { only }),
    ...(onTraceLine && { onTraceLine }),
  });
  console.log(progress.add(outcome));
  if (outcome.violation === undefined) return 0;
  console.log(describe(outcome));
  if (only === undefined && args.shrink !== "0") console.log(await describeShrunk(kinds, args, outcome));
  return 1;
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

interface PlanResult {
  readonly plan: Plan;
  readonly hit?: string;
  readonly violation?: Violation;
}

/** Every plan of every story, or each `plans`th. */
async function runPlans(kinds: readonly AnyKind[], args: Named): Promise<number> {
  const every = args.plans === "all" ? 1 : Number(args.plans);
  if (!(every >= 1)) throw new Error(`plans=${args.plans}: use plans=all, or a number for each n-th plan`);
  const from = Number(args.from ?? 0);
  let [runs, missed, violations] = [0, 0, 0];
  for (const story of Object.keys(stories)) {
    const plans = plansOf(story, await runStory(kinds, story)).filter((_, index) => index % every === from);
    await runAll<PlanResult>(
      args,
      plans.map((plan) => ({ plan })),
      (task) => runTask(kinds, task),
      ({ plan, violation, hit }) => {
        runs += 1;
        if (hit === undefined) missed += 1;
        if (violation === undefined) return true;
        violations += 1;
        console.log(`${violation.invariant} is violated: ${violation.what}\n  ${hit}`);
        console.log(`  repeat it: make sim plan='${nameOf(plan)}' trace=1`);
        return true;
      },
    );
    console.log(`story "${story}": ${runs} plans so far, ${missed} hit nothing, ${violations} violations`);
  }
  return violations;
}

async function main(args: Named): Promise<number> {
  const kinds = await loadKinds();
  if (args.worker !== undefined) {
    await serveTasks((task: Task) => runTask(kinds, task));
    return 0;
  }
  if (args.plan !== undefined) return runOnePlan(kinds, args);
  if (args.plans !== undefined) return runPlans(kinds, args);
  return args.seed === undefined ? runSeeds(kinds, args) : runOneSeed(kinds, args);
}

process.exitCode = (await main(parseArgs(process.argv.slice(2)))) > 0 ? 1 : 0;
