// Creates what krane's pods expect of a cluster: the nodes of each pool in three zones, with the pool's taint, and the
// runtime class for untrusted code.
import { type ApiHandler, createNodes, type NodeOptions } from "@krane/kube-apiserver";
import { nodePoolTaints } from "../model/labels.ts";

const nodes: readonly NodeOptions[] = nodePoolTaints.flatMap((taint) =>
  ["zone-a", "zone-b", "zone-c"].map((zone) => ({
    name: `${taint.value}-${zone}`,
    zone,
    labels: { [taint.key]: taint.value },
    taints: [taint],
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
