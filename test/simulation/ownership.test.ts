// Whose an object is, and what follows from it (K4): conflicts, fights, take-overs and objects that will not go.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { sleep } from "../../src/concurrency/clock.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import { namespaces, pods, replicaSets } from "../../src/kube/resources.ts";
import { withoutEvents } from "./recording-kube-api.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();
const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web-1" };

async function liveSet(world: SimulatedRegion): Promise<ReplicaSet | undefined> {
  return world.api.get(replicaSets, ref, {}, never);
}

async function withOne(overrides: Parameters<SimulatedRegion["startAgent"]>[0] = {}) {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent(overrides);
  await world.until("it is settled", () => agent.controller.status().stream?.cursor === 1n);
  await world.clock.advance(2_000);
  return { world, agent };
}

/** Another manager sets fields by force, as `kubectl apply --force-conflicts` does. */
async function edit(world: SimulatedRegion, spec: object, metadata: object = {}): Promise<void> {
  const selector = { matchLabels: { "unkey.com/deployment.id": "d_1" } };
  await world.api.apply(
    replicaSets,
    { metadata: { ...ref, ...metadata }, spec: { selector, ...spec } } as ReplicaSet,
    { fieldManager: "meddler", force: true },
    never,
  );
}

test("a program that keeps changing an object is named, and not answered every time", async () => {
  const { world, agent } = await withOne({ resyncMs: 0, replayMs: 0 });
  const before = withoutEvents(agent.writes).length;
  for (let round = 0; round < 100; round++) {
    await edit(world, { replicas: 7 + (round % 2) });
    await world.clock.advance(1_000);
  }
  const repairs = withoutEvents(agent.writes).length - before;
  assert.ok(repairs >= 3 && repairs <= 10, `${repairs} repairs in 100 seconds`);
  const [fought] = agent.controller.objects({ onlyTroubled: true });
  assert.match(fought?.reason ?? "", /field manager "meddler" keeps changing spec\.replicas of/);
  await world.until(
    "krane has the last word when it stops",
    async () => {
      return (await liveSet(world))?.spec?.replicas === 1;
    },
    700_000,
  );
  await world.stop();
});

test("a name that is given to another id is a conflict, and free when the first one is deleted", async () => {
  const { world, agent } = await withOne();
  const uid = (await liveSet(world))?.metadata?.uid;
  world.plane.faults.restoreFromEmpty(region);
  await world.setDeployment(1, { deploymentId: "d_other" });
  await world.until(
    "the conflict is seen",
    () => {
      const [object] = agent.controller.objects({ onlyTroubled: true });
      return object?.outcome === ObjectStatus_Outcome.CONFLICT;
    },
    660_000,
  );
  assert.equal((await liveSet(world))?.metadata?.uid, uid);
  await world.api.delete(replicaSets, ref, {}, never);
  await world.until("the name is used for the other", async () => {
    const live = await liveSet(world);
    return live?.spec?.selector.matchLabels?.["unkey.com/deployment.id"] === "d_other";
  });
  await world.stop();
});

test("an object that lost the label it is found by is found by its name, and gets the label back", async () => {
  const { world } = await withOne();
  const uid = (await liveSet(world))?.metadata?.uid;
  await edit(world, {}, { labels: { "app.kubernetes.io/component": "something" } });
  await world.until("the label is back", async () => {
    const live = await liveSet(world);
    return live?.metadata?.labels?.["app.kubernetes.io/component"] === "deployment";
  });
  assert.equal((await liveSet(world))?.metadata?.uid, uid);
  await world.stop();
});

test("an object stays krane's whatever its managed-by label says: the seal counts", async () => {
  const { world } = await withOne();
  const uid = (await liveSet(world))?.metadata?.uid;
  await edit(world, {}, { labels: { "app.kubernetes.io/managed-by": "somebody" } });
  await world.until("the label is back", async () => {
    const live = await liveSet(world);
    return live?.metadata?.labels?.["app.kubernetes.io/managed-by"] === "krane";
  });
  assert.equal((await liveSet(world))?.metadata?.uid, uid);
  await world.stop();
});

test("an object that a finalizer holds is not reported as gone, and is created again once it is", async () => {
  const { world, agent } = await withOne();
  await edit(world, {}, { finalizers: ["example.com/hold"] });
  await world.clock.advance(2_000);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.clock.advance(30_000);
  assert.notEqual((await liveSet(world))?.metadata?.deletionTimestamp, undefined);
  assert.equal((await world.plane.admin.deploymentReport(region, "d_1"))?.exists, true);
  assert.equal(agent.controller.status().stream?.cursor, 1n);
  const old = (await liveSet(world))?.metadata?.uid;
  await world.setDeployment(1, { replicas: 3 });
  await world.clock.advance(30_000);
  await edit(world, {}, { finalizers: [] });
  await world.until("the new one is there", async () => (await liveSet(world))?.spec?.replicas === 3);
  assert.notEqual((await liveSet(world))?.metadata?.uid, old);
  await world.stop();
});

test("a namespace that is deleted under krane's hands is made again with all that was in it", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.until("it is settled", () => agent.controller.status().stream?.cursor === 1n);
  await world.api.delete(namespaces, { name: "acme" }, {}, never);
  await world.until("it is all gone", async () => (await liveSet(world)) === undefined, 120_000);
  await world.until(
    "it is all back",
    async () => {
      return (await liveSet(world)) !== undefined && (await world.policies()).length === 1;
    },
    300_000,
  );
  await world.stop();
});

test("a namespace that vanishes between two writes is made again, with what was written before", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  const refusals: (number | undefined)[] = [];
  const agent = world.createAgentOf("deployments", ({ api, ...deps }) => {
    const apply: KubeApi["apply"] = async (kind, manifest, options, signal) => {
      const isWorkload = kind.kind === replicaSets.kind;
      if (isWorkload && refusals.length === 0) await deleteNamespace(world);
      try {
        return await api.apply(kind, manifest, options, signal);
      } catch (error) {
        if (isWorkload && error instanceof KubeApiError) refusals.push(error.status);
        throw error;
      }
    };
    return createDeploymentController(defaultOptions, { ...deps, api: { ...api, apply } });
  });
  await world.resolved(agent.controller.start());
  await world.setDeployment(1);
  await world.until("it is there", async () => (await liveSet(world)) !== undefined, 300_000);
  assert.equal(refusals[0], 404);
  assert.equal((await world.policies()).length, 1);
  await world.stop();
});

async function deleteNamespace(world: SimulatedRegion): Promise<void> {
  await world.api.delete(namespaces, { name: "acme" }, {}, never);
  while ((await world.api.get(namespaces, { name: "acme" }, {}, never)) !== undefined)
    await sleep(world.clock, 100, never);
}

test("a ReplicaSet as an older agent left it is taken over in place, its pods untouched", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  const labels = {
    "unkey.com/workspace.id": "ws_1a2B3c4D",
    "unkey.com/project.id": "proj_1a2B3c4D",
    "unkey.com/environment.id": "env_1a2B3c4D",
    "unkey.com/deployment.id": "d_1",
    "unkey.com/build.id": "",
    "unkey.com/inject": "true",
    "app.kubernetes.io/managed-by": "krane",
    "app.kubernetes.io/component": "deployment",
  };
  await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  await world.clock.advance(1_000);
  await world.api.apply(
    replicaSets,
    {
      metadata: { ...ref, labels },
      spec: {
        replicas: 2,
        selector: { matchLabels: { "unkey.com/deployment.id": "d_1" } },
        template: {
          metadata: { labels },
          spec: {
            runtimeClassName: "gvisor",
            tolerations: [
              { key: "karpenter.sh/nodepool", operator: "Equal", value: "untrusted", effect: "NoSchedule" },
            ],
            containers: [{ name: "deployment", image: "registry.example/acme/web:1" }],
          },
        },
      },
    },
    { fieldManager: "krane", force: false },
    never,
  );
  const running = async () => (await world.list(pods)).filter(({ status }) => status?.phase === "Running");
  await world.until("its pods run", async () => (await running()).length === 2);
  const before = (await running()).map(({ metadata }) => metadata?.uid).sort();
  const uid = (await liveSet(world))?.metadata?.uid;
  await world.setDeployment(1, { replicas: 2 });
  await world.startAgent();
  await world.until("it is taken over", async () => {
    return (await liveSet(world))?.metadata?.annotations?.["krane.unkey.com/manifest-hash"] !== undefined;
  });
  await world.until("its pods are reported", async () => {
    return (await world.plane.admin.instances(region, "d_1")).length === 2;
  });
  assert.equal((await liveSet(world))?.metadata?.uid, uid);
  assert.deepEqual((await running()).map(({ metadata }) => metadata?.uid).sort(), before);
  await world.stop();
});
