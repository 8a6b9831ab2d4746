import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Deployment, ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import {
  deployment,
  replicaSet,
  startTestCluster,
  type TestCluster,
  untrustedTemplate,
} from "../../test/support/embedded-cluster.ts";
import { FakeClock } from "../testing.ts";
import { isReady } from "./pod-state.ts";

const sets = "/apis/apps/v1/namespaces/work/replicasets";
const deployments = "/apis/apps/v1/namespaces/work/deployments";
const pods = "/api/v1/namespaces/work/pods";

let clock: FakeClock;
let cluster: TestCluster;

beforeEach(async () => {
  clock = new FakeClock();
  cluster = await startTestCluster(clock);
  await cluster.must("POST", "/api/v1/namespaces", { metadata: { name: "work" } });
  await clock.settle();
});

afterEach(async () => {
  await cluster.stop();
  assert.equal(clock.timerCount, 0);
});

const names = (list: readonly Pod[]) => list.map(({ metadata }) => metadata?.name ?? "").sort();
const getSet = (name: string) => cluster.must<ReplicaSet>("GET", `${sets}/${name}`);
const getDeployment = (name: string) => cluster.must<Deployment>("GET", `${deployments}/${name}`);
const listSets = async () => (await cluster.must<{ items: ReplicaSet[] }>("GET", sets)).items;
const change = async (path: string, edit: (object: Record<string, never>) => void) => {
  const object = await cluster.must<Record<string, never>>("GET", path);
  edit(object);
  await cluster.must("PUT", path, object);
};
const scaleTo = (path: string, replicas: number) =>
  change(path, (object) => Object.assign(object["spec"] ?? {}, { replicas }));

describe("ReplicaSets", () => {
  it("get their pods, ready, one per zone, on nodes that they tolerate", async () => {
    await cluster.must("POST", sets, replicaSet("web", 3));
    await clock.advance(2_000);
    const list = await cluster.pods("work");
    assert.equal(list.length, 3);
    assert.ok(list.every(isReady));
    const nodes = list.map(({ spec }) => spec?.nodeName ?? "").sort();
    assert.deepEqual(nodes, ["untrusted-zone-a", "untrusted-zone-b", "untrusted-zone-c"]);
    assert.equal(new Set(list.map(({ status }) => status?.podIP)).size, 3);
    assert.match(list[0]?.metadata?.name ?? "", /^web-[a-z0-9]{5}$/);
    const [owner] = list[0]?.metadata?.ownerReferences ?? [];
    assert.equal(owner?.name, "web");
    assert.ok(owner?.controller && owner.blockOwnerDeletion);
    assert.deepEqual((await getSet("web")).status, {
      replicas: 3,
      fullyLabeledReplicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      observedGeneration: 1,
      terminatingReplicas: 0,
    });
  });

  it("count a pod as available only after minReadySeconds", async () => {
    const set = replicaSet("web", 1);
    Object.assign(set["spec"] as object, { minReadySeconds: 30 });
    await cluster.must("POST", sets, set);
    await clock.advance(10_000);
    assert.equal((await getSet("web")).status?.readyReplicas, 1);
    assert.equal((await getSet("web")).status?.availableReplicas, undefined);
    await clock.advance(25_000);
    assert.equal((await getSet("web")).status?.availableReplicas, 1);
  });

  it("replace a deleted pod, and delete unready ones first when they scale down", async () => {
    await cluster.must("POST", sets, replicaSet("web", 2));
    await clock.advance(2_000);
    const before = names(await cluster.pods("work"));
    await cluster.must("DELETE", `${pods}/${before[0]}`);
    cluster.behaviours.set("slow", { image: "app:*", behaviour: { readyMs: "never" } });
    await clock.advance(3_000);
    // Both pods run; taking readiness away again leaves only the rule's old pod ready.
    cluster.behaviours.set("slow", {
      matches: ({ metadata }) => metadata?.name !== before[1],
      behaviour: { readyMs: "never" },
    });
    await clock.advance(5_000);
    const ready = (await cluster.pods("work")).filter(isReady);
    assert.deepEqual(names(ready), [before[1]]);
    await scaleTo(`${sets}/web`, 1);
    await clock.advance(5_000);
    assert.deepEqual(names(await cluster.pods("work")), [before[1]]);
  });

  it("adopt matching pods without an owner, and release pods that no longer match", async () => {
    const template = untrustedTemplate({ app: "web" });
    await cluster.must("POST", pods, { ...template, metadata: { name: "stray", labels: { app: "web" } } });
    await cluster.must("POST", sets, replicaSet("web", 2));
    await clock.advance(2_000);
    assert.equal((await cluster.pods("work")).length, 2);
    assert.ok(names(await cluster.pods("work")).includes("stray"));
    await change(`${pods}/stray`, (pod) =>
      Object.assign(pod["metadata"] ?? {}, { labels: { app: "other" } }),
    );
    await clock.advance(2_000);
    const list = await cluster.pods("work");
    assert.equal(list.length, 3);
    const stray = list.find(({ metadata }) => metadata?.name === "stray");
    assert.equal(stray?.metadata?.ownerReferences, undefined);
  });

  it("report why they cannot create a pod, and create it once they can", async () => {
    const set = replicaSet("web", 1);
    const { spec } = (set["spec"] as { template: { spec: Record<string, unknown> } }).template;
    spec["runtimeClassName"] = "other";
    await cluster.must("POST", sets, set);
    await clock.advance(1_000);
    const [condition] = (await getSet("web")).status?.conditions ?? [];
    assert.equal(condition?.type, "ReplicaFailure");
    assert.match(condition?.message ?? "", /RuntimeClass "other" not found/);
    await cluster.must("POST", "/apis/node.k8s.io/v1/runtimeclasses", {
      metadata: { name: "other" },
      handler: "runc",
    });
    await clock.advance(30_000);
    assert.equal((await getSet("web")).status?.readyReplicas, 1);
    assert.equal((await getSet("web")).status?.conditions, undefined);
  });
});

describe("Deployments", () => {
  const rolling = { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
  const setImage = (name: string, image: string) =>
    change(`${deployments}/${name}`, (object) => {
      const { template } = object["spec"] as unknown as {
        template: { spec: { containers: { image: string }[] } };
      };
      Object.assign(template.spec.containers[0] ?? {}, { image });
    });

  it("roll to a new template without going below the minimum of available pods", async () => {
    await cluster.must("POST", deployments, deployment("web", 3, "app:1", { strategy: rolling }));
    await clock.advance(5_000);
    assert.equal((await getDeployment("web")).status?.availableReplicas, 3);
    await setImage("web", "app:2");
    for (let step = 0; step < 150; step++) {
      await clock.advance(100);
      const list = (await cluster.pods("work")).filter(({ metadata }) => !metadata?.deletionTimestamp);
      assert.ok(list.filter(isReady).length >= 3, "three pods are ready at any time");
      assert.ok(list.length <= 4, "never more than one pod too many");
    }
    const list = await cluster.pods("work");
    assert.deepEqual(
      list.map(({ spec }) => spec?.containers[0]?.image),
      ["app:2", "app:2", "app:2"],
    );
    const { status, metadata } = await getDeployment("web");
    assert.equal(metadata?.annotations?.["deployment.kubernetes.io/revision"], "2");
    assert.equal(metadata?.generation, status?.observedGeneration);
    assert.deepEqual(
      status?.conditions?.map(({ type, status, reason }) => [type, status, reason]),
      [
        ["Available", "True", "MinimumReplicasAvailable"],
        ["Progressing", "True", "NewReplicaSetAvailable"],
      ],
    );
    assert.deepEqual((await listSets()).map(({ spec }) => spec?.replicas).sort(), [0, 3]);
  });

  it("stop rolling at a template whose pods never become ready, and report it after the deadline", async () => {
    const spec = { strategy: rolling, progressDeadlineSeconds: 60 };
    await cluster.must("POST", deployments, deployment("web", 2, "app:1", spec));
    await clock.advance(5_000);
    cluster.behaviours.set("broken", { image: "app:2", behaviour: { image: "missing" } });
    await setImage("web", "app:2");
    await clock.advance(70_000);
    const list = await cluster.pods("work");
    assert.equal(list.filter(isReady).length, 2);
    assert.equal(list.length, 3);
    const progressing = (await getDeployment("web")).status?.conditions?.find(
      ({ type }) => type === "Progressing",
    );
    assert.deepEqual([progressing?.status, progressing?.reason], ["False", "ProgressDeadlineExceeded"]);
  });

  it("roll back to an old template with its ReplicaSet", async () => {
    await cluster.must("POST", deployments, deployment("web", 1));
    await clock.advance(3_000);
    const [first] = await listSets();
    await setImage("web", "app:2");
    await clock.advance(10_000);
    await setImage("web", "app:1");
    await clock.advance(10_000);
    const active = (await listSets()).filter(({ spec }) => spec?.replicas === 1);
    assert.deepEqual(
      active.map(({ metadata }) => metadata?.name),
      [first?.metadata?.name],
    );
    assert.equal(active[0]?.metadata?.annotations?.["deployment.kubernetes.io/revision"], "3");
  });

  it("never run both templates at once with Recreate", async () => {
    await cluster.must(
      "POST",
      deployments,
      deployment("web", 2, "app:1", { strategy: { type: "Recreate" } }),
    );
    await clock.advance(3_000);
    await setImage("web", "app:2");
    for (let step = 0; step < 50; step++) {
      await clock.advance(100);
      const images = (await cluster.pods("work")).map(({ spec }) => spec?.containers[0]?.image);
      assert.ok(new Set(images).size <= 1);
    }
    assert.equal((await getDeployment("web")).status?.availableReplicas, 2);
    assert.equal((await getDeployment("web")).status?.updatedReplicas, 2);
  });

  it("scale without a new ReplicaSet, do not roll while paused, and keep a bounded history", async () => {
    await cluster.must("POST", deployments, deployment("web", 1, "app:1", { revisionHistoryLimit: 1 }));
    await clock.advance(3_000);
    await scaleTo(`${deployments}/web`, 4);
    await clock.advance(3_000);
    assert.equal((await listSets()).length, 1);
    assert.equal((await cluster.pods("work")).length, 4);
    await change(`${deployments}/web`, (object) => Object.assign(object["spec"] ?? {}, { paused: true }));
    await setImage("web", "app:2");
    await clock.advance(5_000);
    assert.equal((await listSets()).length, 1);
    await change(`${deployments}/web`, (object) => Object.assign(object["spec"] ?? {}, { paused: false }));
    await clock.advance(20_000);
    await setImage("web", "app:3");
    await clock.advance(20_000);
    await setImage("web", "app:4");
    await clock.advance(20_000);
    assert.equal((await listSets()).length, 2);
    assert.equal((await getDeployment("web")).status?.updatedReplicas, 4);
  });
});

describe("dependents of a deleted owner", () => {
  const body = (propagationPolicy: string) => ({
    kind: "DeleteOptions",
    apiVersion: "v1",
    propagationPolicy,
  });

  it("are deleted after a background deletion, at all levels", async () => {
    await cluster.must("POST", deployments, deployment("web", 2));
    await clock.advance(3_000);
    await cluster.must("DELETE", `${deployments}/web`, body("Background"));
    await clock.advance(5_000);
    assert.deepEqual(await listSets(), []);
    assert.deepEqual(await cluster.pods("work"), []);
  });

  it("are deleted first in a foreground deletion", async () => {
    await cluster.must("POST", deployments, deployment("web", 2));
    await clock.advance(3_000);
    await cluster.must("DELETE", `${deployments}/web`, body("Foreground"));
    await clock.advance(500);
    assert.equal((await cluster.request("GET", `${deployments}/web`)).status, 200);
    assert.equal((await cluster.pods("work")).length, 2);
    await clock.advance(5_000);
    assert.equal((await cluster.request("GET", `${deployments}/web`)).status, 404);
    assert.deepEqual(await cluster.pods("work"), []);
  });

  it("stay, without owner, in an orphan deletion", async () => {
    await cluster.must("POST", sets, replicaSet("web", 2));
    await clock.advance(3_000);
    const before = names(await cluster.pods("work"));
    await cluster.must("DELETE", `${sets}/web`, body("Orphan"));
    await clock.advance(5_000);
    assert.equal((await cluster.request("GET", `${sets}/web`)).status, 404);
    const left = await cluster.pods("work");
    assert.deepEqual(names(left), before);
    assert.ok(left.every(({ metadata }) => metadata?.ownerReferences === undefined));
  });

  it("stay while one of several owners exists", async () => {
    const maps = "/api/v1/namespaces/work/configmaps";
    type Owner = { metadata: { uid: string } };
    const first = await cluster.must<Owner>("POST", maps, { metadata: { name: "first" } });
    const second = await cluster.must<Owner>("POST", maps, { metadata: { name: "second" } });
    const reference = (name: string, { metadata }: Owner) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      name,
      uid: metadata.uid,
    });
    await cluster.must("POST", maps, {
      metadata: { name: "child", ownerReferences: [reference("first", first), reference("second", second)] },
    });
    await cluster.must("DELETE", `${maps}/first`);
    await clock.advance(1_000);
    const child = await cluster.must<Pod>("GET", `${maps}/child`);
    assert.deepEqual(
      child.metadata?.ownerReferences?.map(({ name }) => name),
      ["second"],
    );
    await cluster.must("DELETE", `${maps}/second`);
    await clock.advance(1_000);
    assert.equal((await cluster.request("GET", `${maps}/child`)).status, 404);
  });

  it("are deleted for custom resources too", async () => {
    await cluster.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata: { name: "policies.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { plural: "policies", kind: "Policy" },
        versions: [
          { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } },
        ],
      },
    });
    await cluster.must("POST", sets, replicaSet("web", 0));
    await clock.advance(1_000);
    const { metadata } = await getSet("web");
    const policies = "/apis/example.com/v1/namespaces/work/policies";
    await cluster.must("POST", policies, {
      apiVersion: "example.com/v1",
      kind: "Policy",
      metadata: {
        name: "mine",
        ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: metadata?.uid }],
      },
    });
    await clock.advance(1_000);
    assert.equal((await cluster.request("GET", `${policies}/mine`)).status, 200);
    await cluster.must("DELETE", `${sets}/web`);
    await clock.advance(1_000);
    assert.equal((await cluster.request("GET", `${policies}/mine`)).status, 404);
  });
});
