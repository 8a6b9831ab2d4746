// Nodes of two pools in three zones, each pool behind its taint, for tests of scheduling.
import type { NodeOptions } from "../../src/controllers/nodes.ts";

const pools = [
  { pool: "untrusted", taint: "karpenter.sh/nodepool" },
  { pool: "sentinel", taint: "node-class" },
];

export const pooledNodes: readonly NodeOptions[] = pools.flatMap(({ pool, taint }) =>
  ["zone-a", "zone-b", "zone-c"].map((zone) => ({
    name: `${pool}-${zone}`,
    zone,
    labels: { [taint]: pool },
    taints: [{ key: taint, value: pool, effect: "NoSchedule" }],
  })),
);
