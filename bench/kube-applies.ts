// Measures how many applies a real API server handles at a given concurrency, from krane's client and from
// node:https. The API server is the limit: this shows that krane is not, and which concurrency is best.

import { requestApi } from "../test/support/cluster/api-request.ts";
import { type Cluster, startCluster } from "../test/support/cluster.ts";
import { resolveKubeBinaries } from "../tools/kube-binaries.ts";
import type { Benchmark } from "./benchmark.ts";
import { median } from "./statistics.ts";
import { type Workers, withWorkers } from "./worker-process.ts";
import type { ApplyResult, ApplyTask } from "./workers/apply-task.ts";

const levels = [1, 8, 16, 32, 64];
const rounds = 2;
const count = 200;
const namespace = "bench";

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const report = (line: string) => console.error(line);
  const binaries = await resolveKubeBinaries(process.env, { report }, signal);
  if (binaries.kind === "missing") return [`skipped: ${binaries.what}`];
  return withWorkers(["apply-client"], signal, async (workers) => {
    const cluster = await startCluster({ binariesDir: binaries.dir }, signal);
    try {
      const created = await requestApi(cluster, {
        method: "POST",
        path: "/api/v1/namespaces",
        body: { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
      });
      if (created.status !== 201)
        throw new Error(`cannot create the namespace: the API server returned ${created.status}`);
      const lines: string[] = [];
      for (const level of levels) lines.push(await measureLevel(workers, cluster, level));
      return [
        ...lines,
        `new ReplicaSets of 2.2 KB; raw is node:https; ${rounds} rounds of ${count} each, taking turns; the control plane shares the machine`,
      ];
    } finally {
      await cluster.stop();
    }
  });
}

async function measureLevel(workers: Workers, cluster: Cluster, level: number): Promise<string> {
  const samples: Record<ApplyTask["side"], ApplyResult[]> = { krane: [], raw: [] };
  for (let round = 0; round < rounds; round++) {
    // The order alternates, because the control plane still works on what the previous side left.
    const sides = ["krane", "raw"] as const;
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const task: ApplyTask = {
        side,
        url: cluster.serverUrl,
        ca: cluster.ca,
        token: cluster.adminToken,
        namespace,
        namePrefix: `${side}-${level}-${round}`,
        callers: level,
        connections: level,
        warmUp: level,
        count,
      };
      samples[side].push(await workers.run<ApplyResult>("apply-client", task));
    }
  }
  const rate = (side: ApplyTask["side"]) => count / median(samples[side].map(({ seconds }) => seconds));
  const [krane, raw] = [rate("krane"), rate("raw")];
  return `${String(level).padStart(2)} in flight: krane ${krane.toFixed(0)}/s, raw ${raw.toFixed(0)}/s, ratio ${(krane / raw).toFixed(2)}`;
}

export const kubeAppliesBenchmark: Benchmark = {
  name: "kube-applies",
  measures: "applies per second on a real API server, beside node:https",
  run,
};
