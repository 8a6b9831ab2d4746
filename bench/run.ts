// `make bench`: measures every figure in krane's docs in one run, each with the raw limit
// beside it. Machines are noisy, so the ratio is the figure to trust.
//   make bench                all of them
//   make bench only=start-up  one
import { untilInterrupted } from "../test/support/cluster/interruption.ts";
import type { Benchmark } from "./benchmark.ts";
import { dashboardBenchmark } from "./dashboard.ts";
import { deploymentsBenchmark } from "./deployments.ts";
import { isolationBenchmark } from "./isolation.ts";
import { kubeAppliesBenchmark } from "./kube-applies.ts";
import { kubeCacheBenchmark } from "./kube-cache.ts";
import { kubeClientBenchmark } from "./kube-client.ts";
import { kubeWatchBenchmark } from "./kube-watch.ts";
import { nodeBenchmark } from "./node.ts";
import { resyncBenchmark } from "./resync.ts";
import { scaleBenchmark } from "./scale.ts";
import { secretsBenchmark } from "./secrets.ts";
import { serverBenchmark } from "./server.ts";
import { startUpBenchmark } from "./start-up.ts";
import { vaultBenchmark } from "./vault.ts";
import { versionsBenchmark } from "./versions.ts";

const benchmarks: readonly Benchmark[] = [
  startUpBenchmark,
  kubeClientBenchmark,
  kubeAppliesBenchmark,
  kubeWatchBenchmark,
  kubeCacheBenchmark,
  deploymentsBenchmark,
  isolationBenchmark,
  vaultBenchmark,
  resyncBenchmark,
  scaleBenchmark,
  secretsBenchmark,
  serverBenchmark,
  dashboardBenchmark,
  versionsBenchmark,
  nodeBenchmark,
];

const only = process.env["only"];
const chosen = benchmarks.filter((benchmark) => only === undefined || benchmark.name === only);
if (chosen.length === 0) {
  console.error(`no benchmark named ${only}; there are: ${benchmarks.map((b) => b.name).join(", ")}`);
  process.exit(64);
}
const interrupted = untilInterrupted();
try {
  for (const benchmark of chosen) {
    interrupted.throwIfAborted();
    console.log(`\n== ${benchmark.name}: ${benchmark.measures}`);
    for (const line of await benchmark.run(interrupted)) console.log(line);
  }
} catch (error) {
  if (!interrupted.aborted) throw error;
}
