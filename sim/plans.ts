// Exhaustive plans: a story runs once undisturbed, which counts the messages between agents and their peers. Then it runs
// again for each message and each fault, and that fault hits that message. Nothing is left to chance, so a moment that a
// random seed meets once in a thousand runs is met in every run of all plans.
import type { AnyKind } from "../src/kinds/kinds.ts";
import type { Interference, MessagePoint } from "./link.ts";
import { convergenceOf, watchEverything } from "./run-seed.ts";
import { stories } from "./scenarios.ts";
import type { SimAgent } from "./sim-agent.ts";
import type { Violation } from "./sim-region.ts";
import { World } from "./world.ts";

/** What is done to a message, and where. */
const faultsAt = {
  request: ["crash before", "lose", "hold"],
  response: ["crash after", "lose", "hold"],
  event: ["crash before", "cut", "hold"],
} as const satisfies Readonly<Record<MessagePoint, readonly string[]>>;

export type PlanFault = (typeof faultsAt)[MessagePoint][number];

/** Of a request: a write must not arrive after its lease has expired (sim/link.ts). */
const requestHoldMs = 2_500;
// An answer that is late by more than most deadlines, and a watch that shows an old state for a minute.
const holdMs = 60_000;

export interface Plan {
  readonly story: string;
  /** Which message, counted over the whole run. */
  readonly index: number;
  readonly fault: PlanFault;
}

export interface PlanOutcome {
  /** The messages that the run had up to the end of its story, in their order. */
  readonly messages: readonly { readonly point: MessagePoint; readonly what: string }[];
  /** What the plan hit; undefined if it hit nothing. */
  readonly hit?: string;
  readonly violation?: Violation;
  readonly hash: string;
  readonly lastLines: readonly string[];
}

const seed = 1;
const storyMs = 60_000;
const settleMaxMs = 15 * 60_000;
const settleStepMs = 10_000;
// The departed are looked for, and seals put back, by the next resync.
const calmMs = 65_000;
const steadyMs = 150_000;

export async function runStory(
  kinds: readonly AnyKind[],
  story: string,
  plan?: Omit<Plan, "story">,
  onTraceLine?: (line: string) => void,
): Promise<PlanOutcome> {
  const steps = stories[story];
  if (steps === undefined)
    throw new Error(`no story named "${story}"; there are: ${Object.keys(stories).join(", ")}`);
  const messages: { point: MessagePoint; what: string }[] = [];
  let hit: string | undefined;
  let isOver = false;
  const interfere = (agent: SimAgent, point: MessagePoint, what: string): Interference | undefined => {
    if (isOver) return undefined;
    messages.push({ point, what: `${agent.process?.name}: ${what}` });
    if (messages.length - 1 !== plan?.index) return undefined;
    hit = `${point} of ${agent.process?.name}: ${what}`;
    world.trace.add("adversary", `${plan.fault}: ${hit}`);
    if (plan.fault === "crash before" || plan.fault === "crash after") {
      agent.kill();
      world.startLater(agent, 3_000);
      return undefined;
    }
    if (plan.fault === "hold") return { kind: "hold", ms: point === "request" ? requestHoldMs : holdMs };
    return { kind: plan.fault };
  };
  const world: World = await World.create({ seed, kinds, interfere, ...(onTraceLine && { onTraceLine }) });
  const convergence = watchEverything(world);
  for (const agent of world.agents) agent.start();
  for (const [atSeconds, act] of steps)
    world.clock.setTimer(atSeconds * 1_000, () => void Promise.resolve(act(world)).catch(fail(world)));
  await world.runFor(storyMs);
  isOver = true;
  await convergenceOf(world, convergence, { settleMaxMs, settleStepMs, calmMs, steadyMs });
  world.abandon();
  return {
    messages,
    hash: world.trace.digest(),
    lastLines: world.trace.last(40),
    ...(hit !== undefined && { hit }),
    ...(world.violation && { violation: world.violation }),
  };
}

function fail(world: World): (error: unknown) => void {
  return (error) => world.violate("simulation", error instanceof Error ? String(error.stack) : String(error));
}

/** Every plan of a story, from what its undisturbed run had. */
export function plansOf(story: string, { messages }: PlanOutcome): readonly Plan[] {
  return messages.flatMap(({ point }, index) => faultsAt[point].map((fault) => ({ story, index, fault })));
}
