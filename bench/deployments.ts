// Measures the agent on a real cluster with thousands of deployments: throughput compared with a bare client that
// sends the same manifests, resource use, the latency of a single change, the cost of a resync, and the best number
// of workers.
import { resolveKubeBinaries } from "../tools/kube-binaries.ts";
import type { Benchmark } from "./benchmark.ts";
import { withDividedCores } from "./cores.ts";
import { type BenchRegion, withRegion } from "./deployments/bench-region.ts";
import { measureChanges, measureReadiness, measureRepairs } from "./deployments/latencies.ts";
import { measureQuestions, measureResync } from "./deployments/resync-cost.ts";
import type { SampleSet } from "./deployments/sample-set.ts";
import { measureAgent, measureRaw, settle, type Throughput } from "./deployments/throughput.ts";
import { measureTurn, type Sets, type Turn, turnLines } from "./deployments/turns.ts";
import { percentile, ratio } from "./statistics.ts";
import { type Workers, withWorkers } from "./worker-process.ts";

const sizeVariable = "KRANE_BENCH_N";
const namespaces = 50;
const levels = [32, 64, 128];
const perLevelMax = 400;
/** An odd number, so that there is a median. */
const turns = 5;
/** The number of single changes. */
const rawSingles = 100;
const resyncCpuGoal = 1;

// Each deployment is used only once: an object that is edited repeatedly is left to its editor.
const changed = range(0, 50);
const edited = range(50, 80);
const scaled = range(80, 100);

interface Level {
  readonly inFlight: number;
  readonly agent: Throughput;
  readonly raw: Throughput;
}

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const deployments = Number(process.env[sizeVariable] ?? 2_000);
  if (!Number.isInteger(deployments) || deployments < 100 || deployments > 10_000) {
    throw new Error(`${sizeVariable} is a whole number from 100 to 10000`);
  }
  const report = (line: string) => console.error(line);
  const binaries = await resolveKubeBinaries(process.env, { report }, signal);
  if (binaries.kind === "missing") return [`skipped: ${binaries.what}`];
  return withDividedCores((cores) =>
    withWorkers(["manifest-client", "question-client"], signal, async (workers) => {
      const place = { binariesDir: binaries.dir, cores };
      const perLevel = Math.min(perLevelMax, deployments);
      const inRegion = <T>(work: (region: BenchRegion) => Promise<T>) => withRegion(place, signal, work);
      const table = await inRegion((region) => measureLevels(region, workers, perLevel));
      // Two, because the best setting for few objects in one run need not be the best for many.
      const best = [...table]
        .sort((a, b) => b.raw.objectsPerSecond - a.raw.objectsPerSecond)
        .slice(0, 2)
        .map(({ inFlight }) => inFlight);
      const sets = {
        agent: { name: "krane", deployments, namespaces },
        raw: { name: "raw", deployments, namespaces },
      };
      const results: Turn[] = [];
      for (let turn = 0; turn < turns; turn++)
        results.push(await measureTurn(inRegion, workers, { turn, sets, inFlight: best }));
      const singles = await inRegion((region) => measureSingles(region, workers, sets));
      return [
        ...turnLines(results, sets, best),
        ...singles,
        ...table.map(levelLine),
        `the lines by workers: ${perLevel} deployments each, taking turns, in a cluster of their own`,
        cores.about,
      ];
    }),
  );
}

async function measureLevels(
  region: BenchRegion,
  workers: Workers,
  deployments: number,
): Promise<readonly Level[]> {
  const results: Level[] = [];
  for (const [round, inFlight] of levels.entries()) {
    const setOf = (side: string): SampleSet => ({ name: `${side}${inFlight}`, deployments, namespaces });
    const agentSide = async () => {
      const agent = await region.startAgent({ workers: inFlight });
      const result = await measureAgent(region, agent, setOf("krane"));
      await agent.stop();
      return result;
    };
    const rawSide = () => measureRaw(region, workers, inFlight, setOf("raw"));
    // The order alternates, because the cluster still holds what the previous side left.
    if (round % 2 === 0) results.push({ inFlight, agent: await agentSide(), raw: await rawSide() });
    else results.push({ inFlight, raw: await rawSide(), agent: await agentSide() });
  }
  return results;
}

async function measureSingles(region: BenchRegion, workers: Workers, sets: Sets): Promise<readonly string[]> {
  const { deployments } = sets.agent;
  const first = await region.startAgent();
  await measureAgent(region, first, sets.agent);
  await first.stop();
  await measureRaw(region, workers, Math.max(...levels), { ...sets.raw, deployments: rawSingles });
  const agent = await region.startAgent();
  await settle(region);
  const changes = await measureChanges(region, sets, changed);
  const repairs = await measureRepairs(region, sets.agent, edited);
  const readiness = await measureReadiness(region, sets.agent, scaled);
  const resync = await measureResync(region, agent, deployments);
  const rawCpuSeconds = await measureQuestions(region, workers, sets.agent);
  return [
    `change to applied: krane ${spread(changes.agentMs)}, raw ${spread(changes.rawMs)}, ratio of p50 ${ratio(percentile(changes.agentMs, 50), percentile(changes.rawMs, 50))}`,
    `hand edit to repaired: ${spread(repairs)}`,
    `pod Ready to reported: ${spread(readiness)}`,
    `resync of ${deployments} in sync: ${resync.writes} writes (goal: 0), krane ${resync.cpuSeconds.toFixed(2)} CPU-s (goal: under ${resyncCpuGoal}), raw questions ${rawCpuSeconds.toFixed(2)} CPU-s, ratio ${ratio(resync.cpuSeconds, rawCpuSeconds)}`,
  ];
}

function levelLine({ inFlight, agent, raw }: Level): string {
  return `${String(inFlight).padStart(2)} workers: krane ${rate(agent)}, raw ${rate(raw)}, ratio ${ratio(agent.objectsPerSecond, raw.objectsPerSecond)}`;
}

function rate({ objectsPerSecond, seconds }: Throughput): string {
  return `${objectsPerSecond.toFixed(0)}/s (${seconds.toFixed(1)} s)`;
}

function spread(times: readonly number[]): string {
  return `p50 ${percentile(times, 50).toFixed(0)} ms, p99 ${percentile(times, 99).toFixed(0)} ms`;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

export const deploymentsBenchmark: Benchmark = {
  name: "deployments",
  measures: "the agent with thousands of deployments on a real cluster, beside a bare client",
  run,
};
