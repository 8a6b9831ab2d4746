// The cluster that krane's pods are written for: untrusted and sentinel nodes in three
// zones, each pool behind its taint, and the runtime class of untrusted code.
import type { Node } from "kubernetes-types/core/v1.js";
import { KubeApiError } from "../../../kube/errors.ts";
import type { KubeTransport } from "../../../kube/transport.ts";
import type { KubeObject, ResourceKind } from "../../../kube/types.ts";
import { ClusterClient } from "./cluster-client.ts";
import { nodeKind, runtimeClassKind } from "./watched-kinds.ts";

const zones = ["zone-a", "zone-b", "zone-c"] as const;
const pools = [
  { pool: "untrusted", taint: "karpenter.sh/nodepool" },
  { pool: "sentinel", taint: "node-class" },
] as const;

/** Creates what is not there yet, so that calling it again changes nothing. */
export async function createFixture(transport: KubeTransport, signal: AbortSignal): Promise<void> {
  const client = new ClusterClient(transport, "cluster-fixture");
  await ensure(client, runtimeClassKind, { metadata: { name: "gvisor" }, handler: "runsc" }, signal);
  for (const node of fixtureNodes()) await ensure(client, nodeKind, node, signal);
}

async function ensure<T extends KubeObject>(
  client: ClusterClient,
  kind: ResourceKind<T>,
  object: T,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(kind, object, signal);
  } catch (error) {
    if (!(error instanceof KubeApiError) || error.reason !== "AlreadyExists") throw error;
  }
}

export function fixtureNodes(): Node[] {
  return pools.flatMap(({ pool, taint }, poolIndex) =>
    zones.map((zone, zoneIndex) => createNode(pool, taint, zone, poolIndex * zones.length + zoneIndex)),
  );
}

function createNode(pool: string, taint: string, zone: string, index: number): Node {
  const name = `${pool}-${zone}`;
  const room = { cpu: "64", memory: "256Gi", "ephemeral-storage": "1Ti", pods: "5k" };
  // A range per node keeps the addresses of pods distinct over the cluster.
  const podCIDR = `10.${100 + index}.0.0/16`;
  return {
    metadata: {
      name,
      labels: {
        [taint]: pool,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": zone,
      },
    },
    spec: { podCIDR, podCIDRs: [podCIDR], taints: [{ key: taint, value: pool, effect: "NoSchedule" }] },
    status: {
      capacity: room,
      allocatable: room,
      addresses: [
        { type: "InternalIP", address: `192.168.0.${10 + index}` },
        { type: "Hostname", address: name },
      ],
      nodeInfo: {
        machineID: "",
        systemUUID: "",
        bootID: "",
        kernelVersion: "6.12.0",
        osImage: "stand-in",
        containerRuntimeVersion: "stand-in://1.0.0",
        kubeletVersion: "v1.36.0",
        kubeProxyVersion: "",
        operatingSystem: "linux",
        architecture: "amd64",
      },
    },
  };
}
