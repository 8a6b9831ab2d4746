import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node, Pod, PodSpec } from "kubernetes-types/core/v1.js";
import { pooledNodes } from "../../test/support/pooled-nodes.ts";
import { selectorMatches } from "../kinds/label-selectors.ts";
import { findNode, isTolerated, type Placement } from "./node-fit.ts";
import { nodeOf } from "./nodes.ts";

const zoneKey = "topology.kubernetes.io/zone";
const nodes = pooledNodes.map(nodeOf);
const untrusted = {
  key: "karpenter.sh/nodepool",
  operator: "Equal",
  value: "untrusted",
  effect: "NoSchedule",
};

const createPod = (name: string, spec: Partial<PodSpec>, labels = { app: "web" }): Pod => ({
  metadata: { name, namespace: "work", labels },
  spec: { containers: [], tolerations: [untrusted], ...spec },
});
const placed = (...pods: Pod[]): Placement => ({
  podsMatching: (selector, namespace) =>
    pods.filter(
      ({ metadata }) => metadata?.namespace === namespace && selectorMatches(selector, metadata.labels),
    ),
  countOn: (node) => pods.filter(({ spec }) => spec?.nodeName === node).length,
});
const nameOf = (pod: Pod, placement: Placement, among: readonly Node[] = nodes) => {
  const fit = findNode(pod, among, placement);
  return fit.kind === "node" ? fit.name : fit.message;
};
const spread = (whenUnsatisfiable: string) => [
  { maxSkew: 1, topologyKey: zoneKey, whenUnsatisfiable, labelSelector: { matchLabels: { app: "web" } } },
];

describe("the node for a pod", () => {
  it("has only taints that it tolerates, or the reason is counted", () => {
    assert.equal(nameOf(createPod("p", {}), placed()), "untrusted-zone-a");
    const message = nameOf(createPod("p", { tolerations: [] }), placed());
    assert.equal(
      message,
      "0/6 nodes are available: 3 node(s) had untolerated taint(s) {karpenter.sh/nodepool: untrusted}, " +
        "3 node(s) had untolerated taint(s) {node-class: sentinel}.",
    );
  });

  it("is in the zone with the fewest matching pods, even if another node is emptier", () => {
    const topologySpreadConstraints = spread("ScheduleAnyway");
    const others = [
      createPod("one", { nodeName: "untrusted-zone-a" }),
      createPod("two", { nodeName: "untrusted-zone-b" }, { app: "other" }),
      createPod("three", { nodeName: "untrusted-zone-c" }),
    ];
    assert.equal(
      nameOf(createPod("p", { topologySpreadConstraints }), placed(...others)),
      "untrusted-zone-b",
    );
  });

  it("is missing when the skew must not grow and the missing zone has no node", () => {
    const topologySpreadConstraints = spread("DoNotSchedule");
    const pod = createPod("p", { topologySpreadConstraints });
    const others = placed(createPod("one", { nodeName: "untrusted-zone-a" }));
    const withoutLabel = nodes.filter(({ metadata }) => metadata?.name !== "untrusted-zone-b");
    const cordoned = withoutLabel.map((node) =>
      node.metadata?.name === "untrusted-zone-c"
        ? { ...node, metadata: { ...node.metadata, labels: {} } }
        : node,
    );
    assert.equal(nameOf(pod, others), "untrusted-zone-b");
    // Only zone-a is left as a domain: the node without the label does not count as one.
    assert.equal(nameOf(pod, others, cordoned), "untrusted-zone-a");
  });

  it("follows preferred pod affinity when spreading does not decide", () => {
    const podAffinity = {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          podAffinityTerm: {
            topologyKey: zoneKey,
            namespaces: ["sentinel"],
            labelSelector: { matchLabels: { app: "gate" } },
          },
        },
      ],
    };
    const friend: Pod = {
      metadata: { name: "gate", namespace: "sentinel", labels: { app: "gate" } },
      spec: { containers: [], nodeName: "sentinel-zone-c" },
    };
    assert.equal(nameOf(createPod("p", { affinity: { podAffinity } }), placed(friend)), "untrusted-zone-c");
  });

  it("respects selectors, node affinity and cordons", () => {
    const inZone = { [zoneKey]: "zone-c" };
    assert.equal(nameOf(createPod("p", { nodeSelector: inZone }), placed()), "untrusted-zone-c");
    const nodeSelectorTerms = [
      { matchExpressions: [{ key: zoneKey, operator: "NotIn", values: ["zone-a", "zone-c"] }] },
    ];
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
    };
    assert.equal(nameOf(createPod("p", { affinity }), placed()), "untrusted-zone-b");
    const cordoned = nodes.map((node) => ({ ...node, spec: { ...node.spec, unschedulable: true } }));
    assert.equal(
      nameOf(createPod("p", {}), placed(), cordoned),
      "0/6 nodes are available: 6 node(s) were unschedulable.",
    );
  });
});

describe("a toleration", () => {
  const taint = { key: "k", value: "v", effect: "NoSchedule" };

  it("matches by key, value and effect, if set", () => {
    assert.ok(isTolerated(taint, [{ operator: "Exists" }]));
    assert.ok(isTolerated(taint, [{ key: "k", operator: "Exists" }]));
    assert.ok(isTolerated(taint, [{ key: "k", value: "v" }]));
    assert.ok(!isTolerated(taint, [{ key: "k", value: "w" }]));
    assert.ok(!isTolerated(taint, [{ key: "k", operator: "Exists", effect: "NoExecute" }]));
    assert.ok(!isTolerated(taint, []));
  });
});
