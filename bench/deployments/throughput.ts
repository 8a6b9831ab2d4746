// Measures how long it takes until a whole set of deployments is in the cluster: with the agent, and as the raw limit.
import { performance } from "node:perf_hooks";
import type { Workers } from "../worker-process.ts";
import type { ManifestResult, ManifestTask } from "../workers/manifest-client.ts";
import type { AgentProcess } from "./agent-process.ts";
import { type BenchRegion, regionName } from "./bench-region.ts";
import { keyOf, objectCount, type SampleSet, sampleDeployment } from "./sample-set.ts";

export interface Throughput {
  readonly seconds: number;
  readonly objectsPerSecond: number;
  readonly cpuSeconds: number;
}

const settleMs = 1_000;
const settleLimitMs = 300_000;
const setLimitMs = 600_000;

/** Waits until neither an agent nor the cluster's controllers work on earlier changes. */
export async function settle({ replicaSets, pods, calls, signal }: BenchRegion): Promise<void> {
  const wait = { limitMs: settleLimitMs, signal };
  await Promise.all([
    replicaSets.seen.quiet("ReplicaSets change", settleMs, wait),
    pods.seen.quiet("pods change", settleMs, wait),
    calls.quiet("the agent calls", settleMs, wait),
  ]);
}

/**
 * From the moment the control plane starts to send until a watch shows the last object. The cost of placing the orders
 * at the control plane is left out: it shares a core with the agent here, and is not what is measured.
 */
export async function measureAgent(
  region: BenchRegion,
  agent: AgentProcess,
  set: SampleSet,
): Promise<Throughput> {
  const { admin, orders, replicaSets, calls, signal } = region;
  const wanted = Array.from({ length: set.deployments }, (_, index) => sampleDeployment(set, index));
  await settle(region);
  orders.close();
  for (const one of wanted) await admin.setDeployment(regionName, one);
  await settle(region);
  const wait = { limitMs: setLimitMs, signal };
  const begun = { cpu: agent.cpuSeconds(), ms: performance.now() };
  const whenApplied = replicaSets.seen.untilAll(
    `${set.deployments} ReplicaSets`,
    wanted.map(keyOf),
    ({ key }) => key,
    wait,
  );
  const whenReported = calls.untilAll(
    `${set.deployments} reports`,
    wanted.map(({ k8sName }) => k8sName),
    (call) => (call.kind === "report" ? call.k8sName : ""),
    wait,
  );
  orders.open();
  const [appliedAt] = await Promise.all([whenApplied, whenReported]);
  return throughput(set, (appliedAt - begun.ms) / 1000, agent.cpuSeconds() - begun.cpu);
}

export async function measureRaw(
  region: BenchRegion,
  workers: Workers,
  inFlight: number,
  set: SampleSet,
): Promise<Throughput> {
  await settle(region);
  const { serverUrl: url, ca, agentToken: token } = region.cluster;
  const task: ManifestTask = { url, ca, token, inFlight, set };
  const { seconds, cpuSeconds } = await workers.run<ManifestResult>("manifest-client", task);
  return throughput(set, seconds, cpuSeconds);
}

function throughput(set: SampleSet, seconds: number, cpuSeconds: number): Throughput {
  return { seconds, cpuSeconds, objectsPerSecond: objectCount(set) / seconds };
}
