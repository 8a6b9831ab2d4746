// Brings a used cluster back to the state after its start, for tests that run
// an agent: it owns every krane-labelled object, so none may be left from before.

import type { ClusterFacts } from "./facts.ts";
import { runKubectl } from "./kubectl.ts";

const systemNamespaces = new Set(["default", "kube-system", "kube-public", "kube-node-lease"]);
const workloads = "deployments,statefulsets,daemonsets,jobs,cronjobs,replicasets";
const managed =
  "services,secrets,configmaps,serviceaccounts,poddisruptionbudgets,ciliumnetworkpolicies,events,roles,rolebindings";

export async function emptyCluster(facts: ClusterFacts): Promise<void> {
  const remove = (...args: string[]) =>
    runKubectl(facts, ["delete", ...args, "--all-namespaces", "--ignore-not-found", "--wait=false"]);
  await remove(workloads, "--all");
  await remove(managed, "--selector=app.kubernetes.io/managed-by=krane");
  // The namespace controller waits out half the grace period of the pods it
  // finds, 16 s by default, unless they are gone before it looks.
  await remove("pods", "--all", "--grace-period=0", "--force");
  const listed = await runKubectl(facts, ["get", "namespaces", "--output=name"]);
  const namespaces = listed
    .split("\n")
    .map((line) => line.replace("namespace/", ""))
    .filter((name) => name !== "" && !systemNamespaces.has(name));
  if (namespaces.length > 0) {
    await runKubectl(facts, [
      "delete",
      "namespaces",
      ...namespaces,
      "--ignore-not-found",
      "--wait=true",
      "--timeout=60s",
    ]);
  }
}
