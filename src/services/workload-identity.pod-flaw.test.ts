import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, PodSpec } from "kubernetes-types/core/v1.js";
import { ownPod, ownReplicaSet } from "../../test/support/own-workload.ts";
import { findPodFlaw } from "./workload-identity.ts";

const set = ownReplicaSet();
const applied = (time: string) => ({
  ...set,
  metadata: { ...set.metadata, managedFields: [{ manager: "krane", operation: "Apply", time }] },
});

function podWith(change: Partial<PodSpec>, metadata: Pod["metadata"] = {}): Pod {
  const pod = ownPod();
  const spec = { ...pod.spec, containers: pod.spec?.containers ?? [], ...change };
  return { ...pod, metadata: { ...pod.metadata, ...metadata }, spec };
}

const containers = ownPod().spec?.containers ?? [];
const [main] = containers;
const privileged = { name: "x", securityContext: { privileged: true } };

test("a pod from the template has no flaw, also with what the platform's injector added", () => {
  assert.equal(findPodFlaw(ownPod(), set), undefined);
  const initContainers = [{ name: "copy-inject", image: "injector:1" }];
  assert.equal(findPodFlaw(podWith({ initContainers }), set), undefined);
});

const lessIsolated: readonly (readonly [what: string, change: Partial<PodSpec>])[] = [
  ["without its runtime class", { runtimeClassName: "" }],
  ["in the host's network", { hostNetwork: true }],
  ["with the host's processes", { hostPID: true }],
  ["with the host's IPC", { hostIPC: true }],
  ["with a path of the host", { volumes: [{ name: "h", hostPath: { path: "/" } }] }],
  ["with a privileged container", { containers: [...containers, privileged] }],
  ["with a privileged init container", { initContainers: [privileged] }],
  ["with a privileged ephemeral container", { ephemeralContainers: [privileged] }],
  ["with a second container", { containers: [...containers, { name: "sidecar", image: "sidecar:1" }] }],
  ["with another init container", { initContainers: [{ name: "setup", image: "setup:1" }] }],
  ["with a debugger", { ephemeralContainers: [{ name: "debugger", image: "debugger:1" }] }],
  ["with another volume", { volumes: [{ name: "s", secret: { secretName: "x" } }] }],
];

for (const [what, change] of lessIsolated) {
  test(`a pod ${what} is less isolated, however old it is`, () => {
    assert.equal(findPodFlaw(podWith(change), set), "pod is less isolated than its template");
    const old = podWith(change, { creationTimestamp: "2026-01-01T00:00:00Z" });
    assert.equal(findPodFlaw(old, applied("2026-01-02T00:00:00Z")), "pod is less isolated than its template");
  });
}

test("a pod with another image or mark is not from the template", () => {
  const flaw = "pod is not from the template of its ReplicaSet";
  assert.equal(
    findPodFlaw(podWith({ containers: [{ name: main?.name ?? "", image: "evil:1" }] }), set),
    flaw,
  );
  assert.equal(findPodFlaw(podWith({}, { annotations: {} }), set), flaw);
  assert.equal(
    findPodFlaw(podWith({ serviceAccountName: "other" }), set),
    "pod runs as another service account than its template",
  );
});

test("a pod that is older than krane's last write may be of an older template", () => {
  const change = { containers: [{ name: main?.name ?? "", image: "older:1" }] };
  const metadata = { annotations: {}, creationTimestamp: "2026-01-01T00:00:00Z" };
  assert.equal(findPodFlaw(podWith(change, metadata), applied("2026-01-01T00:00:00Z")), undefined);
  const flaw = "pod is not from the template of its ReplicaSet";
  assert.equal(findPodFlaw(podWith(change, metadata), applied("2025-12-31T23:59:59Z")), flaw);
});

test("where the template has no sandbox, a pod may have none, and one from before may still have it", () => {
  const { runtimeClassName: _, ...bare } = set.spec?.template?.spec ?? { containers };
  const trusted = {
    ...set,
    spec: { ...set.spec, template: { ...set.spec?.template, spec: bare } },
  } as typeof set;
  const own = podWith({});
  const { runtimeClassName: __, ...without } = own.spec ?? { containers };
  assert.equal(findPodFlaw({ ...own, spec: without }, trusted), undefined);
  assert.equal(findPodFlaw(own, trusted), undefined);
  const flaw = "pod is less isolated than its template";
  assert.equal(findPodFlaw(podWith({ runtimeClassName: "other" }), trusted), flaw);
  assert.equal(findPodFlaw({ ...own, spec: { ...without, hostNetwork: true } }, trusted), flaw);
});
