// Measures `bin/krane agent` with a region of thousands of deployments of two pods each: memory, CPU at rest, CPU until in
// sync after a start, the repair of a hand edit, and a bulk of changes.
import { setTimeout as delay } from "node:timers/promises";
import type { Benchmark } from "./benchmark.ts";
import { isInSync, type ScaleServers, untilFigures, withScaleServers } from "./scale/servers.ts";
import { median } from "./statistics.ts";

const sizesVariable = "KRANE_BENCH_SIZES";
const defaultSizes = "2000,10000,50000";
const perNamespace = 40;
const restMs = 120_000;
const settleMs = 15_000;
const limitMs = 3_600_000;
const edits = 5;
const changesMax = 10_000;
/** Of the region's size. */
const goals = new Map([
  [10_000, { residentMb: 120, restPercent: 1 }],
  [50_000, { residentMb: 350, restPercent: undefined }],
]);

interface Sizes {
  readonly deployments: number;
  readonly fillCpuSeconds: number;
  readonly fillPeakMb: number;
  readonly startSeconds: number;
  readonly startCpuSeconds: number;
  readonly startPeakMb: number;
  readonly residentMb: number;
  readonly restPercent: number;
  readonly serverRestPercent: number;
  readonly repairMs: number;
  readonly changes: number;
  readonly changesCpuSeconds: number;
  readonly afterMb: number;
}

async function run(interrupted: AbortSignal): Promise<readonly string[]> {
  const sizes = (process.env[sizesVariable] ?? defaultSizes).split(",").map(Number);
  const measured: Sizes[] = [];
  for (const deployments of sizes) {
    const namespaces = Math.max(1, Math.round(deployments / perNamespace));
    const servers = (work: (servers: ScaleServers) => Promise<Sizes>) =>
      withScaleServers({ namespaces }, [], interrupted, work);
    measured.push(await servers((each) => measure(each, deployments)));
  }
  return measured.flatMap(linesOf);
}

async function measure(servers: ScaleServers, deployments: number): Promise<Sizes> {
  const { plane, cluster, signal } = servers;
  const pause = (ms: number) => delay(ms, undefined, { signal });
  await plane({ do: "set", from: 0, to: deployments, tag: "1" });
  const filling = await servers.startAgent();
  await untilFigures("the region is filled", servers, isInSync, limitMs);
  const filled = { fillCpuSeconds: filling.cpuSeconds(), fillPeakMb: filling.peakMb() };
  await filling.stop();
  await cluster({ do: "run pods" });

  const { reports } = await servers.figures();
  const beganMs = performance.now();
  const agent = await servers.startAgent();
  const isReported = (now: { readonly reports: number }) => now.reports - reports >= deployments;
  await untilFigures("the new agent is in sync", servers, (now) => isInSync(now) && isReported(now), limitMs);
  const started = {
    startSeconds: (performance.now() - beganMs) / 1_000,
    startCpuSeconds: agent.cpuSeconds(),
    startPeakMb: agent.peakMb(),
  };
  await pause(settleMs);

  const before = { agent: agent.cpuSeconds(), plane: await servers.figures(), ms: performance.now() };
  await pause(restMs);
  const seconds = (performance.now() - before.ms) / 1_000;
  const rest = {
    restPercent: ((agent.cpuSeconds() - before.agent) / seconds) * 100,
    serverRestPercent: (((await servers.figures()).cpuSeconds - before.plane.cpuSeconds) / seconds) * 100,
    residentMb: agent.residentMb(),
  };
  const repairs: number[] = [];
  for (let edit = 0; edit < edits; edit++)
    repairs.push(await cluster({ do: "edit", index: Math.trunc((edit / edits) * deployments) }));

  const changes = Math.min(changesMax, deployments);
  const beforeChanges = agent.cpuSeconds();
  await plane({ do: "set", from: 0, to: changes, tag: "2" });
  await untilFigures("the changes are applied", servers, isInSync, limitMs);
  const changesCpuSeconds = agent.cpuSeconds() - beforeChanges;
  await pause(settleMs);
  const applied = await cluster({ do: "count", tag: "2" });
  if (applied !== changes) throw new Error(`${applied} of ${changes} changes are in the cluster`);
  const afterMb = agent.residentMb();
  await agent.stop();
  return {
    deployments,
    ...filled,
    ...started,
    ...rest,
    repairMs: median(repairs),
    changes,
    changesCpuSeconds,
    afterMb,
  };
}

function linesOf(one: Sizes): readonly string[] {
  const goal = goals.get(one.deployments);
  const under = (limit: number | undefined, unit: string) =>
    limit === undefined ? "" : ` (goal: under ${limit}${unit})`;
  return [
    `${one.deployments} deployments, ${2 * one.deployments} pods:`,
    `  memory at rest: ${one.residentMb.toFixed(0)} MB${under(goal?.residentMb, " MB")}; peak while starting ${one.startPeakMb.toFixed(0)} MB, after the changes ${one.afterMb.toFixed(0)} MB`,
    `  CPU at rest: ${one.restPercent.toFixed(2)} % of a core${under(goal?.restPercent, " %")}; control plane ${one.serverRestPercent.toFixed(2)} %`,
    `  start to in sync and reported: ${one.startCpuSeconds.toFixed(1)} CPU-s, ${one.startSeconds.toFixed(1)} s`,
    `  hand edit to repaired: ${one.repairMs.toFixed(0)} ms (median of ${edits})`,
    `  filling the region: ${one.fillCpuSeconds.toFixed(1)} CPU-s, ${perObject(one.fillCpuSeconds, one.deployments)} ms per deployment, peak ${one.fillPeakMb.toFixed(0)} MB`,
    `  ${one.changes} changes: ${one.changesCpuSeconds.toFixed(1)} CPU-s, ${perObject(one.changesCpuSeconds, one.changes)} ms per change`,
  ];
}

function perObject(cpuSeconds: number, objects: number): string {
  return ((cpuSeconds / objects) * 1_000).toFixed(2);
}

export const scaleBenchmark: Benchmark = {
  name: "scale",
  measures: "the agent with 2,000 to 50,000 deployments and twice as many pods, on embedded servers",
  run,
};
