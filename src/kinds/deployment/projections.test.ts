import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { ContainerStatus, Pod, PodStatus } from "kubernetes-types/core/v1.js";
import { deploymentSpec } from "../../../test/support/deployment-messages.ts";
import { testSeal } from "../../../test/support/test-seal.ts";
import { annotationKeys } from "../../model/labels.ts";
import { desiredReplicaSet } from "./pod-template.ts";
import { addressOf, isFailure, projectPod, projectReplicaSet, socketOf } from "./projections.ts";

const ready: PodStatus = {
  phase: "Running",
  podIP: "10.1.2.3",
  conditions: [{ type: "ContainersReady", status: "True" }],
};

function pod(status: PodStatus, metadata: Pod["metadata"] = {}): Pod {
  return {
    metadata: { name: "web-x7k2p", namespace: "acme", ...metadata },
    spec: {
      containers: [
        {
          name: "deployment",
          ports: [{ containerPort: 3000 }],
          resources: { limits: { cpu: "1500m", memory: "1Gi" }, requests: { cpu: "1m", memory: "1Mi" } },
        },
        { name: "second", ports: [{ containerPort: 9 }], resources: { limits: { cpu: "9", memory: "9Gi" } } },
      ],
    },
    status,
  };
}

function waiting(reason: string): ContainerStatus[] {
  const running = { name: "other", image: "", imageID: "", ready: true, restartCount: 0 };
  return [running, { ...running, name: "deployment", ready: false, state: { waiting: { reason } } }];
}

const notReady = [{ type: "ContainersReady", status: "False" }];
const containersReady = { type: "ContainersReady", status: "True" };
const lost = { ...ready, conditions: [{ type: "Ready", status: "False" }, containersReady] };
const gated = {
  ...ready,
  conditions: [{ type: "Ready", status: "False", reason: "ReadinessGatesNotReady" }, containersReady],
};

for (const [what, status, expected] of [
  ["Running and its containers ready", ready, "running"],
  ["Running, not ready", { ...ready, conditions: notReady }, "pending"],
  [
    "Running, readiness unknown",
    { ...ready, conditions: [{ type: "ContainersReady", status: "Unknown" }] },
    "pending",
  ],
  ["Running, nothing said of readiness", { phase: "Running", podIP: "10.1.2.3" }, "pending"],
  [
    "Running and Ready by another condition",
    { ...ready, conditions: [{ type: "Ready", status: "True" }] },
    "pending",
  ],
  ["Running on a node that does not answer", lost, "pending"],
  ["Running behind a closed readiness gate", gated, "pending"],
  ["Pending with an address", { ...ready, phase: "Pending" }, "pending"],
  ["Pending without an address", { phase: "Pending" }, "omitted"],
  ["in an unknown phase", { ...ready, phase: "Unknown" }, "pending"],
  ["Failed", { ...ready, phase: "Failed" }, "omitted"],
  ["Succeeded", { ...ready, phase: "Succeeded" }, "omitted"],
  [
    "Failed after crashing",
    { ...ready, phase: "Failed", containerStatuses: waiting("CrashLoopBackOff") },
    "omitted",
  ],
  ["without a status", {}, "omitted"],
  [
    "creating its container",
    { ...ready, phase: "Pending", containerStatuses: waiting("ContainerCreating") },
    "pending",
  ],
] as const satisfies readonly (readonly [string, PodStatus, string])[]) {
  test(`a pod that is ${what} is ${expected}`, () => {
    assert.equal(projectPod(pod(status)).standing, expected);
    assert.equal(projectPod(pod(status, { deletionTimestamp: "2026-01-01T00:00:00Z" })).standing, "omitted");
  });
}

for (const reason of [
  "CrashLoopBackOff",
  "ImagePullBackOff",
  "ErrImagePull",
  "InvalidImageName",
  "CreateContainerConfigError",
]) {
  test(`a container that waits in ${reason} makes its pod failed, whatever the phase`, () => {
    for (const phase of ["Running", "Pending", "Unknown"]) {
      const seen = projectPod(pod({ ...ready, phase, containerStatuses: waiting(reason) }));
      assert.deepEqual([seen.standing, isFailure(seen.standing)], [reason, true]);
    }
    const starting = projectPod(
      pod({ phase: "Pending", podIP: "10.1.2.3", initContainerStatuses: waiting(reason) }),
    );
    assert.equal(starting.standing, reason);
    const leaving = pod(
      { ...ready, containerStatuses: waiting(reason) },
      { deletionTimestamp: "2026-01-01T00:00:00Z" },
    );
    assert.equal(projectPod(leaving).standing, "omitted");
  });
}

test("an address is the pod's name in the cluster's DNS, with the port it listens on itself", () => {
  assert.equal(addressOf(projectPod(pod(ready)), "acme"), "10-1-2-3.acme.pod.cluster.local:3000");
  assert.equal(
    addressOf(projectPod(pod({ ...ready, podIP: "fd00:10::1f" })), "acme"),
    "fd00-10--1f.acme.pod.cluster.local:3000",
  );
  const portless = pod(ready);
  assert.equal(
    addressOf(projectPod({ ...portless, spec: { containers: [{ name: "deployment" }] } }), "acme"),
    "10-1-2-3.acme.pod.cluster.local:8080",
  );
});

test("failing pods that never got an address keep apart by their names", () => {
  const status = { phase: "Pending", containerStatuses: waiting("ImagePullBackOff") };
  const one = projectPod(pod(status, { name: "web-1" }));
  assert.deepEqual(
    [one.standing, addressOf(one, "acme")],
    ["ImagePullBackOff", "web-1.acme.pod.cluster.local:3000"],
  );
  assert.notEqual(projectPod(pod(status, { name: "web-2" })).endpoint, one.endpoint);
});

test("CPU and memory are the limits of the first container", () => {
  const { cpuMillicores, memoryMib } = projectPod(pod(ready));
  assert.deepEqual([cpuMillicores, memoryMib], [1_500, 1_024]);
});

test("CPU and memory are those that the node enforces, not those that somebody asks it for", () => {
  const inForce = (limits: Record<string, string>) => {
    const container = { name: "deployment", image: "", imageID: "", ready: true, restartCount: 0 };
    const resized = { ...ready, containerStatuses: [{ ...container, resources: { limits } }] };
    const { cpuMillicores, memoryMib } = projectPod(pod(resized));
    return [cpuMillicores, memoryMib];
  };
  assert.deepEqual(inForce({ cpu: "250m", memory: "256Mi" }), [250, 256]);
  assert.deepEqual(inForce({ cpu: "250m" }), [250, 1_024]);
});

test("no text of any length that people may write into objects is kept", () => {
  const long = "x".repeat(1_000_000);
  const metadata = {
    annotations: { [annotationKeys.templateHash]: long, [annotationKeys.manifestHash]: long },
    ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: long, uid: long, controller: true }],
  };
  const capabilities = { add: [long] };
  const spec = {
    containers: [{ name: "deployment", image: long, args: [long], securityContext: { capabilities } }],
  };
  const many = { containers: [{ name: "deployment", args: Array.from({ length: 100_000 }, () => "x") }] };
  const set = { spec: { selector: {}, template: { metadata, spec } } };
  const [other, more] = [
    { metadata, spec: many },
    { metadata: {}, spec: many },
  ];
  const projections = [
    ...[{ metadata, spec }, { metadata: {}, spec }, other, more].map((each) => projectPod(each)),
    projectReplicaSet({ ...set, metadata }, testSeal),
  ];
  for (const projection of projections) {
    const texts: string[] = [];
    JSON.stringify(projection, (_, value) => {
      if (typeof value === "string") texts.push(value);
      return value;
    });
    assert.ok(texts.join("").length < 10_000, `${texts.map(({ length }) => length)}`);
  }
});

test("a pod belongs to its controller, not to any other owner", () => {
  const owner = (uid: string, controller: boolean) => ({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    name: uid,
    uid,
    controller,
  });
  const ownerReferences = [owner("other", false), owner("ours", true)];
  assert.equal(projectPod(pod(ready, { ownerReferences })).ownerUid, "ours");
  assert.equal(projectPod(pod(ready)).ownerUid, undefined);
});

test("a ReplicaSet that krane applied is recognised with its ids, port and hashes", () => {
  const spec = deploymentSpec({ port: 3000, replicas: 2 });
  const manifest = desiredReplicaSet(spec, { secrets: { audience: "krane" } });
  const live: ReplicaSet = {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      uid: "u-1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      managedFields: [{ manager: "krane", operation: "Apply" }],
    },
  };
  const { manifestHash, templateHash, essence, image, ...seen } = projectReplicaSet(live, testSeal);
  // Pods of an older agent may be left.
  assert.ok(essence);
  assert.deepEqual(seen, {
    namespace: "acme",
    name: "web",
    uid: "u-1",
    generation: 0,
    ownership: { kind: "unsealed", reason: "it has no seal" },
    deploymentId: spec.deploymentId,
    workspaceId: spec.workspaceId,
    environmentId: spec.environmentId,
    port: 3000,
    isSandboxed: true,
    replicas: 2,
    createdAt: "2026-01-01T00:00:00Z",
    deleting: false,
  });
  assert.equal(image, live.spec?.template?.spec?.containers[0]?.image);
  assert.match(manifestHash ?? "", /^[\w-]{16}$/);
  assert.match(templateHash ?? "", /^[\w-]{16}$/);
});

test("a ReplicaSet's id is that of its selector, which nobody can edit", () => {
  const manifest = desiredReplicaSet(deploymentSpec(), { secrets: { audience: "krane" } });
  const labels = { ...manifest.metadata?.labels, "unkey.com/deployment.id": "d_edited" };
  const edited = { ...manifest, metadata: { ...manifest.metadata, labels } };
  assert.equal(projectReplicaSet(edited, testSeal).deploymentId, "d_1a2B3c4D");
});

test("objects without any fields are projected", () => {
  assert.equal(projectPod({}).standing, "omitted");
  assert.equal(projectReplicaSet({}, testSeal).ownership.kind, "foreign");
});

for (const ip of ["10.1.2.3", "fd00::12:3"])
  test(`a pod with address ${ip} is found there`, () => {
    assert.deepEqual(socketOf(projectPod(pod({ ...ready, podIP: ip }))), { ip, port: 3000 });
  });

test("a pod on a node that does not answer is lost, and one behind a readiness gate is not", () => {
  assert.equal(projectPod(pod(lost)).obstacle, "NodeLost: its node does not answer");
  assert.equal(projectPod(pod(gated)).obstacle, undefined);
});

test("the zone of a pod is that of its node, if Kubernetes says so", () => {
  const labels = { "topology.kubernetes.io/zone": "eu-west-1a" };
  assert.deepEqual(
    [projectPod(pod(ready, { labels })).zone, projectPod(pod(ready)).zone],
    ["eu-west-1a", undefined],
  );
});

test("restarts of all containers count, and an unreadable time of creation is unknown", () => {
  const containerStatuses = waiting("CrashLoopBackOff").map((one) => ({ ...one, restartCount: 3 }));
  const metadata = { creationTimestamp: "2026-01-01T00:00:00Z" };
  const { restarts, createdAtSeconds } = projectPod(pod({ ...ready, containerStatuses }, metadata));
  assert.deepEqual([restarts, createdAtSeconds], [6, 1_767_225_600]);
  const unknown = projectPod(pod(ready, { creationTimestamp: "yesterday" }));
  assert.deepEqual([unknown.restarts, unknown.createdAtSeconds], [0, 0]);
});
