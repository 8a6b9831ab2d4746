import assert from "node:assert/strict";
import { test } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import { oursSealed } from "../../../test/support/test-seal.ts";
import {
  ReportDeploymentStatusRequest_UpdateSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { type ObservedPod, observeDeployment } from "./observed.ts";
import type { ReplicaSetProjection } from "./projections.ts";

const replicaSet: ReplicaSetProjection = {
  namespace: "acme",
  name: "web",
  uid: "rs-1",
  generation: 1,
  ownership: oursSealed,
  deploymentId: "d_1",
  workspaceId: "ws_1",
  environmentId: "env_1",
  port: 8080,
  replicas: 3,
  manifestHash: "m1",
  image: "web:1",
  templateHash: "t1",
  isSandboxed: true,
  createdAt: undefined,
  deleting: false,
};

function pod(name: string, changed: Partial<ObservedPod> = {}): ObservedPod {
  return {
    name,
    ownerUid: "rs-1",
    ownerName: "web",
    templateHash: "t1",
    standing: "running",
    endpoint: `${name}:8080`,
    cpuMillicores: 250,
    memoryMib: 256,
    restarts: 0,
    createdAtSeconds: 0,
    zone: undefined,
    ...changed,
  };
}

test("the report lists every instance with what is known of it", () => {
  const { update, counts } = observeDeployment(replicaSet, [
    pod("web-a", { restarts: 2, createdAtSeconds: 1_700_000_000, zone: "eu-west-1a" }),
    pod("web-b", { standing: "pending" }),
    pod("web-c", { standing: "CrashLoopBackOff" }),
    pod("web-d", { standing: "omitted" }),
  ]);
  assert.equal(update.k8sName, "web");
  assert.deepEqual(
    update.instances.map(({ k8sName, status }) => [k8sName, status]),
    [
      ["web-a", Status.RUNNING],
      ["web-b", Status.PENDING],
      ["web-c", Status.FAILED],
    ],
  );
  const [first] = update.instances;
  assert.deepEqual(
    [first?.address, first?.cpuMillicores, first?.memoryMib, first?.restarts, first?.createdAtMs],
    ["web-a.acme.pod.cluster.local:8080", 250n, 256n, 2, 1_700_000_000_000n],
  );
  assert.deepEqual(
    update.instances.map(({ zone }) => zone),
    ["eu-west-1a", "", ""],
  );
  assert.deepEqual(counts, {
    wanted: 3,
    total: 3,
    ready: 1,
    failed: 1,
    ofOlderTemplate: 0,
    failure: "CrashLoopBackOff",
  });
  assert.ok(toBinary(ReportDeploymentStatusRequest_UpdateSchema, update).length > 0);
});

test("a deployment without pods is reported as empty, not left out", () => {
  const { update, counts } = observeDeployment({ ...replicaSet, replicas: 0 }, []);
  assert.deepEqual([update.k8sName, update.instances.length], ["web", 0]);
  assert.deepEqual(counts, { wanted: 0, total: 0, ready: 0, failed: 0, ofOlderTemplate: 0 });
});

test("pods of another ReplicaSet or of none are not instances", () => {
  const { update } = observeDeployment(replicaSet, [
    pod("web-a"),
    pod("web-old", { ownerUid: "rs-0" }),
    pod("web-stray", { ownerUid: undefined }),
  ]);
  assert.deepEqual(
    update.instances.map(({ k8sName }) => k8sName),
    ["web-a"],
  );
});

test("pods of an older template are reported as they are, marked, and counted", () => {
  const { update, counts } = observeDeployment(replicaSet, [
    pod("web-a"),
    pod("web-b", { templateHash: "t0" }),
    pod("web-c", { templateHash: undefined }),
  ]);
  assert.ok(update.instances.every(({ status }) => status === Status.RUNNING));
  assert.deepEqual(
    update.instances.map(({ outdated }) => outdated),
    [false, true, true],
  );
  assert.deepEqual([counts.ready, counts.ofOlderTemplate], [3, 2]);
});

test("a pod whose image was changed since its creation is marked, unless the image is its template's", () => {
  const { update } = observeDeployment(replicaSet, [
    pod("web-a", { laterImage: "web:1" }),
    pod("web-b", { laterImage: "other:1" }),
  ]);
  assert.deepEqual(
    update.instances.map(({ outdated }) => outdated),
    [false, true],
  );
});

test("the fingerprint does not depend on the order of the pods", () => {
  const pods = [pod("web-a"), pod("web-b"), pod("web-c")];
  const { fingerprint, update } = observeDeployment(replicaSet, pods);
  const reversed = observeDeployment(replicaSet, pods.toReversed());
  assert.equal(reversed.fingerprint, fingerprint);
  assert.deepEqual(reversed.update, update);
});

test("the fingerprint changes with everything that the report says", () => {
  const changes: readonly Partial<ObservedPod>[] = [
    {},
    { name: "web-b" },
    { endpoint: "x:1" },
    { standing: "pending" },
    { standing: "ErrImagePull" },
    { standing: "omitted" },
    { cpuMillicores: 1 },
    { memoryMib: 1 },
    { restarts: 1 },
    { createdAtSeconds: 1 },
    { zone: "a" },
    { templateHash: "t0" },
  ];
  const prints = changes.map((changed) => observeDeployment(replicaSet, [pod("web-a", changed)]).fingerprint);
  prints.push(observeDeployment({ ...replicaSet, name: "api" }, [pod("web-a")]).fingerprint);
  assert.equal(new Set(prints).size, prints.length);
});

test("what the report does not say does not change the fingerprint", () => {
  const { fingerprint } = observeDeployment(replicaSet, [pod("web-a")]);
  const other = observeDeployment({ ...replicaSet, manifestHash: "m2", replicas: 9 }, [
    pod("web-a", { obstacle: "Unschedulable" }),
  ]);
  assert.equal(other.fingerprint, fingerprint);
});
