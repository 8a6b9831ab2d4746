// The agent on a real cluster with thousands of deployments: how fast they arrive beside a bare client
// that sends the same manifests, what the agent uses, how long one change takes when nothing else
// happens, what a resync costs, and how many workers are worth having.
import { resolveKubeBinaries } from "../tools/kube-binaries.ts";
import type { Benchmark } from "./benchmark.ts";
import { withDividedCores } from "./cores.ts";
import { type BenchRegion, withRegion } from "./deployments/bench-region.ts";
import { measureChanges, measureReadiness, measureRepairs } from "./deployments/latencies.ts";
import { measureResync } from "./deployments/resync-cost.ts";
import { objectCount, type SampleSet } from "./deployments/sample-set.ts";
import { measureAgent, measureRaw, settle, type Throughput } from "./deployments/throughput.ts";
import { percentile } from "./statistics.ts";
import { type Workers, withWorkers } from "./worker-process.ts";

const sizeVariable = "KRANE_BENCH_N";
const namespaces = 50;
const levels = [8, 16, 32];
const perLevelMax = 400;
const goal = { ratio: 0.85, peakMb: 150, resyncCpuSeconds: 1 };

// Each deployment is used for one of them only: what is edited again and again is left to its editor.
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
    withWorkers(["manifest-client"], signal, async (workers) => {
      const place = { binariesDir: binaries.dir, cores };
      const perLevel = Math.min(perLevelMax, deployments);
      const table = await withRegion(place, signal, (region) => measureLevels(region, workers, perLevel));
      const best = table.reduce((a, b) => (b.raw.objectsPerSecond > a.raw.objectsPerSecond ? b : a)).inFlight;
      const lines = await withRegion(place, signal, (region) =>
        measureRegion(region, workers, { deployments, inFlight: best }),
      );
      return [
        ...lines,
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
      const agent = await region.startAgent(inFlight);
      const result = await measureAgent(region, agent, setOf("krane"));
      await agent.stop();
      return result;
    };
    const rawSide = () => measureRaw(region, workers, inFlight, setOf("raw"));
    // Who begins changes, because the cluster still holds what the one before has left.
    if (round % 2 === 0) results.push({ inFlight, agent: await agentSide(), raw: await rawSide() });
    else results.push({ inFlight, raw: await rawSide(), agent: await agentSide() });
  }
  return results;
}

async function measureRegion(
  region: BenchRegion,
  workers: Workers,
  { deployments, inFlight }: { readonly deployments: number; readonly inFlight: number },
): Promise<readonly string[]> {
  const sets = {
    agent: { name: "krane", deployments, namespaces },
    raw: { name: "raw", deployments, namespaces },
  };
  const first = await region.startAgent();
  const applied = await measureAgent(region, first, sets.agent);
  const peakMb = first.peakMb();
  await first.stop();
  const raw = await measureRaw(region, workers, inFlight, sets.raw);
  const agent = await region.startAgent();
  await settle(region);
  const changes = await measureChanges(region, sets, changed);
  const repairs = await measureRepairs(region, sets.agent, edited);
  const readiness = await measureReadiness(region, sets.agent, scaled);
  const resync = await measureResync(region, agent, deployments);
  const objects = objectCount(sets.agent);
  return [
    `${deployments} deployments, ${objects} objects: krane ${rate(applied)}, raw ${rate(raw)} with ${inFlight} in flight, ratio ${ratio(applied.objectsPerSecond, raw.objectsPerSecond)} (goal: at least ${goal.ratio})`,
    `CPU of that: krane ${applied.cpuSeconds.toFixed(2)} s, reports included, raw ${raw.cpuSeconds.toFixed(2)} s, ratio ${ratio(applied.cpuSeconds, raw.cpuSeconds)}`,
    `peak memory of the agent: ${peakMb.toFixed(0)} MB (goal: under ${goal.peakMb} MB)`,
    `change to applied: krane ${spread(changes.agentMs)}, raw ${spread(changes.rawMs)}, ratio of p50 ${ratio(percentile(changes.agentMs, 50), percentile(changes.rawMs, 50))}`,
    `hand edit to repaired: ${spread(repairs)}`,
    `pod Ready to reported: ${spread(readiness)}`,
    `resync of ${deployments} in sync: ${resync.writes} writes (goal: 0), ${resync.cpuSeconds.toFixed(2)} CPU-s (goal: under ${goal.resyncCpuSeconds}), all asked in ${resync.seconds.toFixed(1)} s`,
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

function ratio(a: number, b: number): string {
  return (a / b).toFixed(2);
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

export const deploymentsBenchmark: Benchmark = {
  name: "deployments",
  measures: "the agent with thousands of deployments on a real cluster, beside a bare client",
  run,
};
