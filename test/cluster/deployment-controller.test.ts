// The deployment controller on a real Kubernetes, with a control plane in memory: what the simulations show
// under a fake clock holds where time and the API server are real.

import assert from "node:assert/strict";
import { before, type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { DeleteDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { events, replicaSets } from "../../src/kube/resources.ts";
import { type defaultOptions, deployment, region } from "../simulation/simulated-region.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";
import type { TestPlane } from "../support/store-admin.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;

before(() => cluster.empty());

function startAgent(t: TestContext, plane: TestPlane, options: Partial<typeof defaultOptions> = {}) {
  return startClusterController(t, { cluster, plane, recordsNamespace: "krane" }, options);
}

test("deployments become ready, are repaired without a resync, and cost no write after a restart", async (t) => {
  const plane = await createRegionPlane();
  for (const index of [1, 2, 3]) {
    const sizes = { replicas: 2, cpuMillicores: 1000n, memoryMib: 1024n };
    const environmentId = index === 3 ? "env_b" : "env_a";
    await plane.admin.setDeployment(region, deployment(index, { ...sizes, environmentId }));
  }
  const first = await startAgent(t, plane, { resyncMs: 0, replayMs: 0 });
  await eventually(
    "two running instances each are reported",
    async () => {
      for (const index of [1, 2, 3]) {
        const instances = await plane.admin.instances(region, `d_${index}`);
        assert.deepEqual(
          instances.map(({ status }) => status),
          [2, 2],
        );
      }
    },
    { deadlineMs: 60_000 },
  );

  const ref = { namespace: "acme", name: "web-1" };
  await cluster.kubectl(["-n", "acme", "label", "rs", "web-1", "unkey.com/project.id=edited", "--overwrite"]);
  await cluster.kubectl(["-n", "acme", "scale", "rs", "web-1", "--replicas=5"]);
  await eventually("both edits are undone", async () => {
    const live = await first.api.get(replicaSets, ref, {}, never);
    assert.equal(live?.spec?.replicas, 2);
    assert.equal(live.metadata?.labels?.["unkey.com/project.id"], "proj_1a2B3c4D");
  });
  await cluster.kubectl(["-n", "acme", "delete", "rs", "web-1"]);
  await eventually(
    "it is back, and reported",
    async () => {
      assert.notEqual(await first.api.get(replicaSets, ref, {}, never), undefined);
      assert.equal(
        (await plane.admin.instances(region, "d_1")).filter(({ status }) => status === 2).length,
        2,
      );
    },
    { deadlineMs: 60_000 },
  );
  await first.stop();

  const second = await startAgent(t, plane, { resyncMs: 500, replayMs: 700 });
  await eventually("it has asked for everything, and streamed it again", () => {
    const { resync, stream } = second.controller.status();
    assert.equal(resync?.asked, 3);
    assert.ok((stream?.cursor ?? 0n) >= 3n, "not yet");
    assert.equal(second.controller.objects().length, 5);
  });
  assert.deepEqual(second.api.writes, []);

  for (const index of [1, 2, 3]) await plane.admin.deleteDeployment(region, `d_${index}`);
  await eventually("all is gone and reported", async () => {
    for (const index of [1, 2, 3])
      assert.equal((await plane.admin.deploymentReport(region, `d_${index}`))?.exists, false);
    const left = await cluster.request({ path: "/apis/cilium.io/v2/namespaces/acme/ciliumnetworkpolicies" });
    assert.deepEqual((left.body as { items: unknown[] }).items, []);
  });
});

test("what was ordered by a call is kept as it was ordered after a restart, and is never asked for", async (t) => {
  const plane = await createRegionPlane();
  const first = await startAgent(t, plane);
  const message = deployment(7, {
    k8sNamespace: "ordered",
    replicas: 1,
    encryptedEnvironmentVariables: new TextEncoder().encode('{"secrets":{"TOKEN":"c2VhbGVk"}}'),
  });
  const key = "ordered/web-7";
  const outcomeAt = ({ controller }: typeof first) =>
    controller.objects().find((object) => object.key === key)?.outcome;
  await first.controller.apply(message, never, "rd_1");
  // Not all of an API server knows a namespace that was made a moment ago. The order stays, and is applied.
  const done = [ObjectStatus_Outcome.APPLIED, ObjectStatus_Outcome.UNCHANGED];
  await eventually("it is applied", () =>
    assert.ok(
      done.some((one) => one === outcomeAt(first)),
      "not yet",
    ),
  );
  await first.stop();

  const second = await startAgent(t, plane, { resyncMs: 500, replayMs: 700 });
  await eventually("it is looked at", () => assert.equal(outcomeAt(second), ObjectStatus_Outcome.UNCHANGED));
  assert.deepEqual(second.api.writes, []);
  assert.equal(second.controller.seen.get(key)?.readinessId, "rd_1");
  await cluster.kubectl([
    "-n",
    "ordered",
    "annotate",
    "rs",
    "web-7",
    "krane.unkey.com/origin=somebody",
    "--overwrite",
  ]);
  await cluster.kubectl(["-n", "ordered", "scale", "rs", "web-7", "--replicas=5"]);
  await eventually("both edits are undone", async () => {
    const live = await second.api.get(replicaSets, { namespace: "ordered", name: "web-7" }, {}, never);
    assert.equal(live?.spec?.replicas, 1);
    assert.equal(live.metadata?.annotations?.["krane.unkey.com/origin"], "scheduler");
  });
  assert.equal(second.controller.status().resync?.asked, 0);
  const away = create(DeleteDeploymentSchema, { k8sNamespace: "ordered", k8sName: "web-7" });
  assert.equal((await second.controller.delete(away, never)).outcome, "deleted");
});

test("a client that keeps changing or deleting an object is named, and a new version is applied at once", async (t) => {
  const plane = await createRegionPlane();
  const { controller } = await startAgent(t, plane, { resyncMs: 0, replayMs: 0 });
  const { transport } = realServerTarget(cluster);
  t.after(() => transport.close());
  const api = createKubeApi(transport);
  const refOf = (index: number) => ({ namespace: "acme", name: `web-${index}` });
  const live = (index: number) => api.get(replicaSets, refOf(index), {}, never);
  const appears = (index: number, replicas: number) =>
    eventually(`web-${index} has ${replicas} replicas`, async () => {
      const found = await live(index);
      assert.equal(found?.spec?.replicas, replicas, "the number of replicas");
      return found;
    });
  const isNamed = (index: number, reason: RegExp) =>
    eventually(`the fight over web-${index} is shown`, () => {
      const [object] = controller
        .objects({ onlyTroubled: true })
        .filter(({ key }) => key === `acme/web-${index}`);
      assert.match(object?.reason ?? "", reason);
    });

  for (const index of [91, 92]) await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  for (let round = 0; round < 4; round++) {
    await appears(91, 1);
    await api.delete(replicaSets, refOf(91), {}, never);
    // The ReplicaSet controller writes its status meanwhile, so a patch may be too late.
    await eventually("web-92 is edited", async () => {
      const edited = await appears(92, 1);
      const edit = [{ op: "replace" as const, path: "/spec/replicas", value: 3 }];
      await api.patch(replicaSets, edited, edit, { fieldManager: "autoscaler" }, never);
    });
  }
  await isNamed(91, /^an unknown client keeps deleting ReplicaSet acme\/web-91 since \d{4}-.*Z$/);
  await isNamed(
    92,
    /^field manager "autoscaler" keeps changing spec\.replicas of ReplicaSet acme\/web-92 since /,
  );
  assert.deepEqual([await live(91), (await live(92))?.spec?.replicas], [undefined, 3]);
  await eventually("both have an event", async () => {
    const { items } = await api.list(events, { namespace: "acme" }, never);
    const names = items.flatMap((event) =>
      Reflect.get(event, "reason") === "Contested" ? [Reflect.get(event, "involvedObject")?.name] : [],
    );
    assert.deepEqual(names.sort(), ["web-91", "web-92"]);
  });

  for (const index of [91, 92]) {
    await plane.admin.setDeployment(region, deployment(index, { replicas: 2 }));
    await appears(index, 2);
  }
});
