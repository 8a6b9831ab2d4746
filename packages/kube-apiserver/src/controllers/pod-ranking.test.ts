import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { rankForRemoval } from "./replicaset-controller.ts";

const createPod = (
  name: string,
  more: { node?: string; phase?: string; ready?: string; born?: string } = {},
): Pod => ({
  metadata: { name, creationTimestamp: more.born ?? "2026-01-01T00:00:00Z" },
  spec: { containers: [], ...(more.node === undefined ? {} : { nodeName: more.node }) },
  status: {
    phase: more.phase ?? "Running",
    conditions:
      more.ready === undefined ? [] : [{ type: "Ready", status: "True", lastTransitionTime: more.ready }],
  },
});

describe("the pods that a ReplicaSet deletes first", () => {
  it("are those without a node, then pending, unready, crowded, newly ready and young ones", () => {
    const ready = "2026-01-01T00:01:00Z";
    const ranked = rankForRemoval([
      createPod("old", { node: "a", ready }),
      createPod("young", { node: "b", ready, born: "2026-01-01T00:00:30Z" }),
      createPod("newly-ready", { node: "c", ready: "2026-01-01T00:02:00Z" }),
      createPod("crowded-1", { node: "d", ready }),
      createPod("crowded-2", { node: "d", ready }),
      createPod("unready", { node: "e" }),
      createPod("pending", { node: "f", phase: "Pending" }),
      createPod("homeless", { phase: "Pending" }),
    ]);
    assert.deepEqual(
      ranked.map(({ metadata }) => metadata?.name),
      ["homeless", "pending", "unready", "crowded-1", "crowded-2", "newly-ready", "young", "old"],
    );
  });
});
