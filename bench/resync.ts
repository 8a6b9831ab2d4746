// Measures what one pass of the resync costs the agent and its control plane: with everything in sync, with objects whose
// notification was lost, and with a request for each object, as a control plane without digests takes. The agent is its
// controller of deployments, with a cluster that has everything; the control plane is a process of its own.
import { setTimeout as delay } from "node:timers/promises";
import type { Benchmark } from "./benchmark.ts";
import { command } from "./isolation/commands.ts";
import { withWorkers } from "./worker-process.ts";
import type { AgentFigures, ResyncAgentTask } from "./workers/resync-agent.ts";
import type { PlaneFigures, ScalePlaneCommand, ScalePlaneFacts } from "./workers/scale-plane.ts";

const sizesVariable = "KRANE_BENCH_SIZES";
const defaultSizes = "2000,10000,50000";
const perNamespace = 40;
const passMs = 10_000;
const inSyncPasses = 5;
const differences = [1, 10, 1_000];
const lookEveryMs = 500;
const limitMs = 1_800_000;
/** Per kind and pass; and of the control plane's CPU, because the agent also walks over what it has. */
const goal = { calls: 2, serverCpuSeconds: 0.02 };

interface Pass {
  readonly agentCpuSeconds: number;
  readonly serverCpuSeconds: number;
  readonly calls: number;
  readonly bytes: number;
  readonly corrected: number;
}

interface Both {
  readonly agent: AgentFigures;
  readonly plane: PlaneFigures;
}

interface Sides {
  plane(what: ScalePlaneCommand): Promise<void>;
  figures(): Promise<Both>;
  readonly signal: AbortSignal;
}

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const sizes = (process.env[sizesVariable] ?? defaultSizes).split(",").map(Number);
  const lines: string[] = [];
  for (const deployments of sizes) lines.push(...(await measure(deployments, signal)));
  return lines;
}

function measure(deployments: number, signal: AbortSignal): Promise<readonly string[]> {
  const namespaces = Math.max(1, Math.round(deployments / perNamespace));
  return withWorkers(["scale-plane", "resync-agent"], signal, async (workers) => {
    const facts = await workers.start<ScalePlaneFacts>("scale-plane", { namespaces });
    const plane = (what: ScalePlaneCommand) => command<ScalePlaneCommand>(facts.commands, what, signal);
    await plane({ do: "set", from: 0, to: deployments, tag: "1" });
    const set = { name: "scale", deployments, namespaces };
    const task: ResyncAgentTask = { controlPlane: facts.url, set, passMs };
    const agent = await workers.start<string>("resync-agent", task);
    const figures = async (): Promise<Both> => ({
      agent: await command<null, AgentFigures>(agent, null, signal),
      plane: await command<ScalePlaneCommand, PlaneFigures>(facts.commands, { do: "figures" }, signal),
    });
    return measurePasses(deployments, { plane, figures, signal });
  });
}

async function measurePasses(deployments: number, sides: Sides): Promise<readonly string[]> {
  const { plane, figures } = sides;
  const isReady = ({ agent, plane: { version, reports } }: Both) =>
    agent.settled === version && !agent.isBusy && reports >= deployments;
  await until(sides, isReady);
  // The first passes do what later ones need not repeat.
  for (let pass = 0; pass < 2; pass++) await nextPass(sides);
  const { writes } = (await figures()).agent;
  const inSync: Pass[] = [];
  for (let pass = 0; pass < inSyncPasses; pass++) inSync.push(await nextPass(sides));
  const made = (await figures()).agent.writes - writes;
  const mean = meanOf(inSync);
  const { calls, serverCpuSeconds } = mean;
  const lines = [
    `${deployments} in sync`.padEnd(28) + passLine(mean),
    `  goals: at most ${goal.calls} calls: ${verdict(calls <= goal.calls)}; control plane under ${goal.serverCpuSeconds} CPU-s: ${verdict(serverCpuSeconds < goal.serverCpuSeconds)}; no write: ${verdict(made === 0)}`,
  ];
  for (const [round, count] of differences.filter((each) => each <= deployments).entries()) {
    await nextPass(sides);
    // No pass runs now, and the next one begins in some seconds.
    await plane({ do: "pause" });
    await plane({ do: "set", from: 0, to: count, tag: String(round + 2) });
    const pass = await correcting(count, sides);
    lines.push(`  ${count} different`.padEnd(28) + passLine(pass));
    await plane({ do: "resume" });
  }
  await plane({ do: "refuse digests" });
  await nextPass(sides);
  return [...lines, "  every object requested".padEnd(28) + passLine(await nextPass(sides))];
}

/** The cost of the pass that finds all differences; of several, if the differences were made while one ran. */
async function correcting(count: number, sides: Sides): Promise<Pass> {
  const passes: Pass[] = [];
  for (let corrected = 0; corrected < count; corrected += passes.at(-1)?.corrected ?? 0) {
    if (passes.length > 2) throw new Error(`the resync corrected ${corrected} of ${count} differences`);
    passes.push(await nextPass(sides));
  }
  return combined(passes, 1);
}

/** The cost from now until the next pass has ended, and with it what it leads to. */
async function nextPass(sides: Sides): Promise<Pass> {
  const before = await sides.figures();
  const after = await until(
    sides,
    ({ agent }) => agent.passStartedMs > before.agent.passStartedMs && !agent.isBusy,
  );
  return {
    agentCpuSeconds: after.agent.cpuSeconds - before.agent.cpuSeconds,
    serverCpuSeconds: after.plane.cpuSeconds - before.plane.cpuSeconds,
    calls: callsOf(after.plane) - callsOf(before.plane),
    bytes: after.plane.bytes - before.plane.bytes,
    corrected: after.agent.corrected - before.agent.corrected,
  };
}

async function until({ figures, signal }: Sides, isReached: (now: Both) => boolean): Promise<Both> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    const now = await figures();
    if (isReached(now)) return now;
    if (performance.now() > endMs) throw new Error(`not within ${limitMs} ms: ${JSON.stringify(now)}`);
    await delay(lookEveryMs, undefined, { signal });
  }
}

/** Reports are not part of a resync. */
function callsOf({ calls }: PlaneFigures): number {
  return Object.entries(calls).reduce(
    (sum, [name, count]) => (name.startsWith("Report") ? sum : sum + count),
    0,
  );
}

function meanOf(passes: readonly Pass[]): Pass {
  return combined(passes, passes.length);
}

function combined(passes: readonly Pass[], divisor: number): Pass {
  const sum = (pick: (pass: Pass) => number) =>
    passes.reduce((total, pass) => total + pick(pass), 0) / divisor;
  return {
    agentCpuSeconds: sum(({ agentCpuSeconds }) => agentCpuSeconds),
    serverCpuSeconds: sum(({ serverCpuSeconds }) => serverCpuSeconds),
    calls: sum(({ calls }) => calls),
    bytes: sum(({ bytes }) => bytes),
    corrected: sum(({ corrected }) => corrected),
  };
}

function passLine({ agentCpuSeconds, serverCpuSeconds, calls, bytes }: Pass): string {
  return `agent ${agentCpuSeconds.toFixed(3)} CPU-s, control plane ${serverCpuSeconds.toFixed(3)} CPU-s, ${calls.toFixed(0)} calls, ${(bytes / 1_000).toFixed(1)} KB`;
}

function verdict(isMet: boolean): string {
  return isMet ? "met" : "missed";
}

export const resyncBenchmark: Benchmark = {
  name: "resync",
  measures: "one pass of the resync of 2,000 to 50,000 deployments: CPU, calls and bytes",
  run,
};
