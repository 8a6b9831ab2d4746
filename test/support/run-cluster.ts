// `make cluster`: a real control plane for a person to look into, until Ctrl-C.

import { join } from "node:path";
import { resolveKubeBinaries } from "../../tools/kube-binaries.ts";
import { untilInterrupted } from "./cluster/interruption.ts";
import { startCluster } from "./cluster.ts";

const interrupted = untilInterrupted();
const report = (line: string) => console.error(line);
try {
  const binaries = await resolveKubeBinaries(process.env, { report }, interrupted);
  if (binaries.kind === "missing") {
    throw new Error(binaries.what);
  }
  report("cluster: starting ...");
  const begun = performance.now();
  const cluster = await startCluster({ binariesDir: binaries.dir }, interrupted);
  report(`cluster: ready after ${((performance.now() - begun) / 1000).toFixed(1)} s, logs in ${cluster.dir}`);
  console.log(`export KUBECONFIG=${cluster.kubeconfigPath}`);
  report(`cluster: the agent's own user (no rights yet): ${cluster.agentKubeconfigPath}`);
  report(`cluster: try ${join(binaries.dir, "kubectl")} --kubeconfig ${cluster.kubeconfigPath} get nodes`);
  report("cluster: Ctrl-C takes it away");
  await new Promise((resolve) => interrupted.addEventListener("abort", resolve, { once: true }));
  report("cluster: stopping ...");
  await cluster.stop();
} catch (error) {
  if (!interrupted.aborted) {
    report(`cluster: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
