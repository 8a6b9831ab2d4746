// Creates what krane's pods expect of a cluster: untrusted and sentinel nodes in three
// zones, each pool with its taint, and the runtime class for untrusted code.
import { type ApiHandler, createNodes, type NodeOptions } from "@krane/kube-apiserver";

const pools = [
  { pool: "untrusted", taint: "karpenter.sh/nodepool" },
  { pool: "sentinel", taint: "node-class" },
] as const;

const nodes: readonly NodeOptions[] = pools.flatMap(({ pool, taint }) =>
  ["zone-a", "zone-b", "zone-c"].map((zone) => ({
    name: `${pool}-${zone}`,
    zone,
    labels: { [taint]: pool },
    taints: [{ key: taint, value: pool, effect: "NoSchedule" }],
  })),
);

/** Creates what is missing, so that a second call changes nothing. */
export async function createFixture(handler: ApiHandler, signal: AbortSignal): Promise<void> {
  const path = "/apis/node.k8s.io/v1/runtimeclasses";
  const body = {
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: "gvisor" },
    handler: "runsc",
  };
  const answer = await handler({ method: "POST", path, contentType: "application/json", body }, signal);
  if (answer.kind === "whole" && answer.status >= 300 && answer.status !== 409)
    throw new Error(`cannot create the runtime class for untrusted code: ${JSON.stringify(answer.body)}`);
  await createNodes(handler, signal, nodes);
}
