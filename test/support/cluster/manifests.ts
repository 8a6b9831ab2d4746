// What a fresh test cluster contains: the nodes that krane's pods are written
// for, the runtime class of untrusted code, and what is audited.

import { kubeletCaller } from "../node/certificates.ts";
import { controlPlaneUsers } from "./credentials.ts";

export const zones = ["zone-a", "zone-b", "zone-c"] as const;

/** Counts what tests and agents do; what keeps the cluster itself going is left out. */
export function auditPolicy(): unknown {
  return {
    apiVersion: "audit.k8s.io/v1",
    kind: "Policy",
    omitStages: ["RequestReceived"],
    rules: [{ level: "None", users: controlPlaneUsers }, { level: "Metadata" }],
  };
}

/** As a v1 List, for one `kubectl apply`. */
export function clusterObjects(): unknown {
  const nodes = zones.flatMap((zone, index) => [
    node("untrusted", zone, index, "karpenter.sh/nodepool"),
    node("sentinel", zone, zones.length + index, "node-class"),
  ]);
  return { apiVersion: "v1", kind: "List", items: [runtimeClass(), ...nodes] };
}

/** Of a cluster whose node registers itself. */
export function realNodeObjects(): unknown {
  const group = "rbac.authorization.k8s.io";
  const callsKubelets = {
    apiVersion: `${group}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: kubeletCaller },
    roleRef: { apiGroup: group, kind: "ClusterRole", name: "system:kubelet-api-admin" },
    subjects: [{ apiGroup: group, kind: "User", name: kubeletCaller }],
  };
  return { apiVersion: "v1", kind: "List", items: [runtimeClass(), callsKubelets] };
}

function runtimeClass(): unknown {
  return {
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: "gvisor" },
    handler: "runsc",
  };
}

function node(pool: string, zone: string, index: number, poolKey: string): unknown {
  const name = `${pool}-${zone}`;
  const room = { cpu: "1k", memory: "4Ti", "ephemeral-storage": "100Ti", pods: "10k" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: { "kwok.x-k8s.io/node": "fake" },
      labels: {
        [poolKey]: pool,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "test-region",
        "topology.kubernetes.io/zone": zone,
      },
    },
    spec: {
      // A range per node keeps the addresses of pods distinct over the cluster.
      podCIDR: `10.${100 + index}.0.0/16`,
      podCIDRs: [`10.${100 + index}.0.0/16`],
      taints: [{ key: poolKey, value: pool, effect: "NoSchedule" }],
    },
    status: { allocatable: room, capacity: room },
  };
}
