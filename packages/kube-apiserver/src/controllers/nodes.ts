// Creates nodes with large capacity. The node controller keeps them ready, and the simulated kubelet reports their pods.
// Nothing runs on them.
import type { Node, Taint } from "kubernetes-types/core/v1.js";
import type { ApiHandler } from "../handler.ts";
import { StatusError } from "../status-error.ts";
import { ClusterClient } from "./cluster-client.ts";
import { nodeKind } from "./watched-kinds.ts";

export interface NodeOptions {
  readonly name: string;
  /** Default "zone-a". */
  readonly zone?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly Taint[];
}

const threeZones: readonly NodeOptions[] = ["zone-a", "zone-b", "zone-c"].map((zone) => ({
  name: `node-${zone}`,
  zone,
}));

/** Creates the missing nodes, so that calling it again changes nothing. Default: one node in each of three zones. */
export async function createNodes(
  handler: ApiHandler,
  signal: AbortSignal,
  nodes: readonly NodeOptions[] = threeZones,
): Promise<void> {
  const client = new ClusterClient(handler, "cluster-nodes");
  for (const [index, options] of nodes.entries()) {
    try {
      await client.create(nodeKind, nodeOf(options, index), signal);
    } catch (error) {
      if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
    }
  }
}

export function nodeOf({ name, zone = "zone-a", labels, taints }: NodeOptions, index: number): Node {
  const room = { cpu: "64", memory: "256Gi", "ephemeral-storage": "1Ti", pods: "5k" };
  // A range per node makes pod addresses unique in the cluster.
  const podCIDR = `10.${100 + index}.0.0/16`;
  return {
    metadata: {
      name,
      labels: {
        ...labels,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": zone,
      },
    },
    spec: { podCIDR, podCIDRs: [podCIDR], ...(taints !== undefined && { taints: [...taints] }) },
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
