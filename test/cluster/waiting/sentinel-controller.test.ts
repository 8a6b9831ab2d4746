// The sentinel controller on a real Kubernetes, with a control plane in memory: what the simulations show
// under a fake clock holds where roll-outs, evictions and garbage collection are the real ones.

import assert from "node:assert/strict";
import { before, type TestContext, test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { Health } from "../../../src/gen/ctrl/v1/sentinel_pb.ts";
import type { KubeApi } from "../../../src/kube/api.ts";
import { createKubeApi } from "../../../src/kube/client.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  namespaces,
  podDisruptionBudgets,
  pods,
  replicaSets,
  services,
} from "../../../src/kube/resources.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import { annotationKeys } from "../../../src/model/labels.ts";
import { withoutEvents } from "../../simulation/recording-kube-api.ts";
import { partsOf } from "../../simulation/sentinel-agents.ts";
import { region } from "../../simulation/simulated-region.ts";
import { realServerTarget } from "../../support/cluster/contract-target.ts";
import { createRegionPlane, startSentinelController } from "../../support/cluster-controller.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { eventually } from "../../support/eventually.ts";
import { companionsOfOlderAgent, deploymentOfOlderAgent } from "../../support/older-sentinel.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
import type { TestPlane } from "../../support/store-admin.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;
const namespace = "sentinel";
// A pod counts as available 30 s after it is ready, and a roll-out replaces one after the other.
const start = { deadlineMs: 120_000 };
const rollOut = { deadlineMs: 300_000 };

before(() => cluster.empty());

function startAgent(t: TestContext, plane: TestPlane) {
  return startSentinelController(t, { cluster, plane }, { resyncMs: 2_000, replayMs: 3_000 });
}

function sentinel(index: number, overrides: Parameters<typeof applySentinel>[0] = {}) {
  return applySentinel({ k8sName: `gate-${index}`, sentinelId: `se_${index}`, ...overrides });
}

async function untilAvailable(plane: TestPlane, index: number, replicas: number): Promise<void> {
  await eventually(
    `${replicas} replicas of sentinel ${index} are reported`,
    async () => {
      const status = await plane.admin.sentinelStatus(region, `se_${index}`);
      assert.deepEqual([status?.health, status?.availableReplicas], [Health.HEALTHY, replicas]);
      assert.notEqual(status?.runningImage, "");
    },
    start,
  );
}

async function podsOf(api: KubeApi, index: number): Promise<readonly Pod[]> {
  const labelSelector = `unkey.com/sentinel.id=se_${index}`;
  return (await api.list(pods, { namespace, labelSelector }, never)).items;
}

async function evict(pod: Pod | undefined): Promise<number> {
  const name = pod?.metadata?.name ?? "";
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  return (await cluster.request({ method: "POST", path, body })).status;
}

async function liveParts(api: KubeApi, index: number): Promise<readonly (KubeObject | undefined)[]> {
  return Promise.all(partsOf(index).map(({ kind, ref }) => api.get(kind, ref, {}, never)));
}

/** Every number of available replicas that a Deployment passes through while something is done to it. */
async function availableDuring(api: KubeApi, index: number, act: () => Promise<void>): Promise<number[]> {
  const watching = new AbortController();
  const samples: number[] = [];
  const sample = async () => {
    const options = { namespace, fieldSelector: `metadata.name=gate-${index}` };
    for await (const event of api.watch(appsDeployments, options, watching.signal))
      if (event.type !== "BOOKMARK") samples.push(event.object.status?.availableReplicas ?? 0);
  };
  const sampling = sample().catch((error) => {
    if (!watching.signal.aborted) throw error;
  });
  try {
    await eventually("it is watched", () => assert.equal(samples.length, 1));
    await act();
  } finally {
    watching.abort();
    await sampling;
  }
  return samples;
}

test("sentinels live: healthy, evicted as their budgets allow, rolled, paused, lost, and deleted", {
  concurrency: true,
}, async (t) => {
  const plane = await createRegionPlane();
  await plane.admin.setSentinel(region, sentinel(1, { replicas: 3 }));
  await plane.admin.setSentinel(region, sentinel(2, { replicas: 1 }));
  await plane.admin.setSentinel(region, sentinel(3, { replicas: 3 }));
  const { api, controller } = await startAgent(t, plane);
  await untilAvailable(plane, 1, 3);
  await untilAvailable(plane, 2, 1);
  await untilAvailable(plane, 3, 3);

  await t.test("one replica is not evicted; of three, one is", async () => {
    await eventually("the budgets are computed", async () => {
      const budgets = (await api.list(podDisruptionBudgets, { namespace }, never)).items;
      const allowed = budgets.map(({ metadata, status }) => [metadata?.name, status?.disruptionsAllowed]);
      assert.deepEqual(allowed.sort(), [
        ["gate-1", 1],
        ["gate-2", 0],
        ["gate-3", 1],
      ]);
    });
    assert.equal(await evict((await podsOf(api, 2))[0]), 429);
    const [first, second] = await podsOf(api, 3);
    // Whoever takes the place of the first must not be ready before the second is asked for.
    const nodes = (await cluster.kubectl(["get", "nodes", "-o", "name"])).trim().split("\n");
    await cluster.kubectl(["cordon", ...nodes]);
    const available = await availableDuring(api, 3, async () => {
      try {
        assert.equal(await evict(first), 201);
        assert.equal(await evict(second), 429);
        await eventually("the first is missed", async () => {
          const status = await plane.admin.sentinelStatus(region, "se_3");
          assert.equal(status?.availableReplicas, 2);
        });
      } finally {
        await cluster.kubectl(["uncordon", ...nodes]);
      }
    });
    assert.equal(Math.min(...available), 2, `available: ${available}`);
  });

  // Each of these waits for pods to be ready for half a minute, once or more often, so they wait together.
  await Promise.all([
    t.test("a new image is rolled out without one replica less at any time", async () => {
      const image = "registry.example/platform/sentinel:2";
      const available = await availableDuring(api, 1, async () => {
        await plane.admin.setSentinel(region, sentinel(1, { replicas: 3, image }));
        await eventually(
          "the new image is all that runs",
          async () => {
            const status = await plane.admin.sentinelStatus(region, "se_1");
            assert.equal(status?.runningImage, image);
          },
          rollOut,
        );
      });
      assert.ok(available.length >= 3 && Math.min(...available) >= 3, `available: ${available}`);
    }),
    t.test("a Deployment that is deleted by hand brings all five back, owned by the new one", async () => {
      const before = (await liveParts(api, 2))[0]?.metadata?.uid;
      await cluster.kubectl(["-n", namespace, "delete", "deployment", "gate-2"]);
      const inOrder = async () => {
        const [deployment, service, budget, ...gossip] = await liveParts(api, 2);
        const uid = deployment?.metadata?.uid;
        assert.ok(uid !== undefined && uid !== before);
        for (const owned of [service, budget])
          assert.deepEqual(
            owned?.metadata?.ownerReferences?.map((owner) => owner.uid),
            [uid],
          );
        for (const shared of gossip) assert.ok(shared);
      };
      await eventually("all five are back", inOrder, start);
      await untilAvailable(plane, 2, 1);
      await inOrder();
    }),
    t.test("whoever was evicted is replaced", () => untilAvailable(plane, 3, 3)),
  ]);

  await t.test("without replicas it is paused", async () => {
    await plane.admin.scaleSentinel(region, "se_1", 0);
    await eventually("it is reported as paused", async () => {
      const status = await plane.admin.sentinelStatus(region, "se_1");
      assert.deepEqual([status?.health, status?.availableReplicas], [Health.PAUSED, 0]);
    });
  });

  await t.test("a restart by hand is let through", async () => {
    const before = (await podsOf(api, 2)).map(({ metadata }) => metadata?.uid);
    await cluster.kubectl(["-n", namespace, "rollout", "restart", "deployment", "gate-2"]);
    await eventually("its pod is another one", async () => {
      const now = (await podsOf(api, 2)).map(({ metadata }) => metadata?.uid);
      assert.equal(now.length, 1);
      assert.ok(!before.includes(now[0]), "it is the same");
    });
    const live = await api.get(appsDeployments, { namespace, name: "gate-2" }, {}, never);
    const { annotations } = live?.spec?.template?.metadata ?? {};
    assert.ok(annotations?.["kubectl.kubernetes.io/restartedAt"], "the mark is gone");
  });

  await t.test("a port that is edited by hand is put back, though no apply can do it", async () => {
    const patch = JSON.stringify([{ op: "replace", path: "/spec/ports/0/port", value: 8041 }]);
    const ports = async () =>
      (await api.get(services, { namespace, name: "gate-1" }, {}, never))?.spec?.ports?.map(
        ({ port }) => port,
      );
    const before = await ports();
    await cluster.kubectl(["-n", namespace, "patch", "service", "gate-1", "--type=json", "-p", patch]);
    await eventually("it is as before", async () => {
      assert.deepEqual(await ports(), before);
      assert.deepEqual(controller.objects({ onlyTroubled: true }), []);
    });
    assert.ok(api.writes.some(({ verb, kind }) => verb === "patch" && kind === "Service"));
  });

  await t.test("at rest, nothing is written", async () => {
    const writes = withoutEvents(api.writes).length;
    const { resync } = controller.status();
    await eventually("three more passes are over", () => {
      const passedMs = Number(
        (controller.status().resync?.lastStartedMs ?? 0n) - (resync?.lastStartedMs ?? 0n),
      );
      assert.ok(passedMs >= 6_000, "not yet");
    });
    assert.deepEqual(withoutEvents(api.writes).slice(writes), []);
  });

  await t.test("a delete leaves nothing, also where owner references and objects were lost", async () => {
    const patch = JSON.stringify({ metadata: { ownerReferences: [] } });
    await cluster.kubectl(["-n", namespace, "delete", "service", "gate-1-gossip-lan", "--wait=false"]);
    await cluster.kubectl(["-n", namespace, "patch", "pdb", "gate-1", "--type=merge", "-p", patch]);
    for (const index of [1, 2, 3]) await plane.admin.deleteSentinel(region, `se_${index}`);
    await eventually("nothing is left", async () => {
      for (const kind of [appsDeployments, services, podDisruptionBudgets, ciliumNetworkPolicies])
        assert.deepEqual((await api.list<KubeObject>(kind, { namespace }, never)).items, []);
      for (const index of [1, 2, 3])
        assert.equal((await plane.admin.sentinelStatus(region, `se_${index}`))?.health, Health.UNHEALTHY);
    });
  });
});

test("what an older agent left is taken over in place: one rolling update, nothing deleted", async (t) => {
  const plane = await createRegionPlane();
  const { transport } = realServerTarget(cluster);
  t.after(() => transport.close());
  const older = createKubeApi(transport);
  const byOlder = { fieldManager: "krane", force: false };
  await older.apply(namespaces, { metadata: { name: namespace } }, byOlder, never);
  const { object: left } = await older.apply(appsDeployments, deploymentOfOlderAgent(), byOlder, never);
  const uid = left.metadata?.uid ?? "";
  const companions = companionsOfOlderAgent(uid);
  await older.apply(services, companions.service, byOlder, never);
  await older.apply(podDisruptionBudgets, companions.budget, byOlder, never);
  await older.apply(services, companions.gossipService, byOlder, never);
  await older.apply(ciliumNetworkPolicies, companions.gossipPolicy, byOlder, never);
  const parts = async () =>
    Promise.all(
      partsOf(1).map(async ({ kind, ref }) => {
        const name = ref.name.replace("gate-1", "gate");
        return (await older.get(kind, { ...ref, name }, {}, never))?.metadata;
      }),
    );
  const uids = async () => (await parts()).map((metadata) => metadata?.uid);
  const before = await uids();

  await plane.admin.setSentinel(region, applySentinel());
  const { api } = await startAgent(t, plane);
  await eventually(
    "it is reported with its image",
    async () => {
      const status = await plane.admin.sentinelStatus(region, "se_1a2B3c4D");
      assert.equal(status?.runningImage, "registry.example/platform/sentinel:1");
    },
    start,
  );
  assert.deepEqual(await uids(), before);
  for (const metadata of await parts())
    assert.ok(metadata?.annotations?.[annotationKeys.seal], `${metadata?.name} is not sealed`);
  assert.deepEqual(
    api.writes.map(({ verb, kind }) => `${verb} ${kind}`),
    [
      "apply Deployment",
      "apply Service",
      "apply PodDisruptionBudget",
      "apply Service",
      "apply CiliumNetworkPolicy",
    ],
  );
  const templates = (await api.list(replicaSets, { namespace }, never)).items.filter(
    ({ metadata }) => metadata?.ownerReferences?.[0]?.uid === uid,
  );
  assert.equal(templates.length, 2, "one rolling update");
});
