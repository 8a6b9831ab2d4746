// Runs one seed: a world that lives and is disturbed for a while, and then has to settle and stay so.
import type { AnyKind } from "../src/kinds/kinds.ts";
import { faults, healAll } from "./adversary.ts";
import { Choices } from "./choices.ts";
import { appLife, callerLife, life } from "./life.ts";
import { AnswersOracle } from "./oracles/answers.ts";
import { Convergence } from "./oracles/convergence.ts";
import { IsolationOracle, LeaseOracle } from "./oracles/isolation.ts";
import { OrdersOracle } from "./oracles/orders.ts";
import { OwnershipOracle } from "./oracles/ownership.ts";
import { RoutesOracle } from "./oracles/routes.ts";
import { SpeechOracle } from "./oracles/speech.ts";
import type { Violation } from "./sim-region.ts";
import { World } from "./world.ts";

/** Something that happens at a time. Its details are drawn from a seed of its own. */
export interface PlannedEvent {
  readonly index: number;
  readonly atMs: number;
  readonly kind: "life" | "fault";
  readonly name: string;
}

export interface SeedOptions {
  readonly seed: number;
  readonly kinds: readonly AnyKind[];
  /** How long the world is disturbed. Default 20 minutes. */
  readonly disturbedMs?: number;
  /** How often it is, each time with hours of quiet before. Default once. */
  readonly acts?: number;
  /** Only these events of the plan happen. */
  readonly only?: ReadonlySet<number>;
  readonly onTraceLine?: (line: string) => void;
}

export interface SeedOutcome {
  readonly seed: number;
  readonly hash: string;
  readonly steps: number;
  readonly simulatedMs: number;
  readonly plan: readonly PlannedEvent[];
  readonly faultsInjected: number;
  readonly violation?: Violation;
  readonly lastLines: readonly string[];
}

/** How many seeds have a control plane that does not name its incarnation, as older ones. */
const unnamedShare = 0.25;
/** And how many of those send no version in responses, as the original's. */
const unversionedShare = 0.5;
/** What only half of the seeds have. It has choices and indexes of its own, so that it does not change what else they do. */
const additions = [
  { part: "apps", firstIndex: 10_000, actions: appLife },
  { part: "caller", firstIndex: 20_000, actions: callerLife },
] as const;
const disturbedMsDefault = 20 * 60_000;
// A deletion that is held back, a namespace in back-off and a node that was lost all take minutes.
const settleMaxMs = 25 * 60_000;
const settleStepMs = 20_000;
// Absent rows may still be confirmed, and seals restored, shortly after.
const calmMs = 10 * 60_000;
// Longer than the replay of the streams and the full report, which happen every ten minutes.
const steadyMs = 12 * 60_000;
// Between two acts. What agents remember of the first one, such as its Deletes, expires after an hour.
const quietMs = 100 * 60_000;
const actIndexes = 100_000;

/** Swarm style: each seed switches some faults on, with rates of its own, so that rare combinations happen. */
export function planOf(
  seed: number,
  disturbedMs: number = disturbedMsDefault,
  act = 0,
): readonly PlannedEvent[] {
  const choicesOf = (part: string) => new Choices(seed, act === 0 ? part : `${part} ${act}`);
  const choices = choicesOf("plan");
  const share = choices.between(0.15, 0.9);
  const on = faults.filter(() => choices.chance(share));
  const lifeEveryMs = choices.between(3_000, 30_000);
  const faultEveryMs = choices.between(8_000, 90_000);
  const events = [
    ...drawn(choices, "life", lifeEveryMs, disturbedMs, life),
    ...drawn(
      choices,
      "fault",
      faultEveryMs,
      disturbedMs,
      on.map(({ weight, name }) => [weight, name]),
    ),
  ];
  const numbered = (found: readonly Omit<PlannedEvent, "index">[], firstIndex: number) =>
    found
      .toSorted((a, b) => a.atMs - b.atMs)
      .map((event, index) => ({ ...event, index: actIndexes * act + firstIndex + index }));
  const added = additions.flatMap(({ part, firstIndex, actions }) => {
    const own = choicesOf(part);
    const everyMs = own.between(10_000, 60_000);
    return own.chance(0.5) ? numbered(drawn(own, "life", everyMs, disturbedMs, actions), firstIndex) : [];
  });
  return [...numbered(events, 0), ...added].sort((a, b) => a.atMs - b.atMs);
}

/** Events of a kind at random times, with weighted names. */
function drawn(
  choices: Choices,
  kind: PlannedEvent["kind"],
  everyMs: number,
  untilMs: number,
  names: readonly (readonly [weight: number, name: string, ...rest: unknown[]])[],
): readonly Omit<PlannedEvent, "index">[] {
  const events: Omit<PlannedEvent, "index">[] = [];
  const sum = names.reduce((total, [weight]) => total + weight, 0);
  for (let atMs = 0; sum > 0; ) {
    atMs += -Math.log(1 - choices.next()) * everyMs;
    if (atMs > untilMs) return events;
    events.push({ atMs, kind, name: weighted(names, choices.next() * sum) });
  }
  return events;
}

function weighted(names: readonly (readonly [number, string, ...unknown[]])[], point: number): string {
  let sum = 0;
  for (const [weight, name] of names) {
    sum += weight;
    if (point < sum) return name;
  }
  return names.at(-1)?.[1] ?? "";
}

export async function runSeed(options: SeedOptions): Promise<SeedOutcome> {
  const { seed, kinds, acts = 1, onTraceLine } = options;
  const worldChoices = new Choices(seed, "world");
  const namesIncarnation = !worldChoices.chance(unnamedShare);
  const sendsVersions = namesIncarnation || !worldChoices.chance(unversionedShare);
  const world = await World.create({
    seed,
    kinds,
    namesIncarnation,
    sendsVersions,
    ...(onTraceLine && { onTraceLine }),
  });
  const convergence = watchEverything(world);
  for (const agent of world.agents) agent.start();
  const startMs = world.clock.nowMs();
  const plan: PlannedEvent[] = [];
  for (let act = 0; act < acts && world.violation === undefined; act++) {
    const begunMs = world.clock.nowMs() - startMs;
    const events = await perform(world, act, options);
    plan.push(...events.map((event) => ({ ...event, atMs: begunMs + event.atMs })));
    const isLast = act === acts - 1;
    const patience = { settleMaxMs, settleStepMs, calmMs, steadyMs: isLast ? steadyMs : quietMs };
    await convergenceOf(world, convergence, patience);
  }
  world.abandon();
  return {
    seed,
    plan,
    hash: world.trace.digest(),
    steps: world.clock.steps,
    simulatedMs: world.clock.nowMs() - startMs,
    faultsInjected: plan.filter(({ kind }) => kind === "fault").length,
    ...(world.violation && { violation: world.violation }),
    lastLines: world.trace.last(40),
  };
}

/** Returns what was planned to happen. */
async function perform(
  world: World,
  act: number,
  { seed, disturbedMs = disturbedMsDefault, only }: SeedOptions,
): Promise<readonly PlannedEvent[]> {
  const plan = planOf(seed, disturbedMs, act).filter(({ index }) => only?.has(index) ?? true);
  for (const event of plan) world.clock.setTimer(event.atMs, () => void happen(world, event));
  await world.runFor(disturbedMs);
  healAll(world);
  return plan;
}

/** All oracles. The one that is returned also judges how the run ends. */
export function watchEverything(world: World): Convergence {
  const convergence = new Convergence(world);
  const oracles = [
    new OwnershipOracle(world),
    new OrdersOracle(world),
    new IsolationOracle(world),
    new LeaseOracle(world),
    new SpeechOracle(world),
    new RoutesOracle(world),
    convergence,
  ];
  for (const oracle of oracles) world.watch(oracle);
  new AnswersOracle(world).start();
  world.apps.start();
  return convergence;
}

const allLife = [...life, ...appLife, ...callerLife];

async function happen(world: World, { index, kind, name }: PlannedEvent): Promise<void> {
  if (world.violation !== undefined) return;
  const choices = new Choices(world.seed, `event ${index}`);
  world.trace.add(kind === "life" ? "people" : "adversary", name);
  try {
    if (kind === "life") await allLife.find(([, each]) => each === name)?.[2](world, choices);
    else await faults.find((fault) => fault.name === name)?.begin(world, choices);
  } catch (error) {
    world.violate("simulation", `${name}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}

export interface Patience {
  readonly settleMaxMs: number;
  readonly settleStepMs: number;
  /** Between the moment when nothing differs and the one from which on nothing may be written. */
  readonly calmMs: number;
  readonly steadyMs: number;
}

/** When the adversary stops, the cluster becomes what is wanted, and stays so without another write. */
export async function convergenceOf(
  world: World,
  convergence: Convergence,
  { settleMaxMs, settleStepMs, calmMs, steadyMs }: Patience,
): Promise<void> {
  let differences: readonly string[] = [];
  for (let waitedMs = 0; waitedMs < settleMaxMs; waitedMs += settleStepMs) {
    await world.runFor(settleStepMs);
    if (world.violation !== undefined) return;
    differences = await convergence.differences();
    if (differences.length === 0) break;
  }
  if (differences.length > 0)
    return world.violate("K12", `not converged: ${differences.slice(0, 5).join("; ")}`);
  await world.runFor(calmMs);
  convergence.takeWrites();
  await world.runFor(steadyMs);
  const writes = convergence.takeWrites();
  if (writes.length > 0)
    world.violate("K11", `${writes.length} writes at steady state: ${writes.slice(0, 5).join("; ")}`);
  const later = await convergence.differences();
  if (later.length > 0) world.violate("K12", `did not stay converged: ${later.slice(0, 5).join("; ")}`);
}
