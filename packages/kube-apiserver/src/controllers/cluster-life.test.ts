import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Node, Pod } from "kubernetes-types/core/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import {
  deployment,
  replicaSet,
  startTestCluster,
  type TestCluster,
  untrustedTemplate,
} from "../../test/support/embedded-cluster.ts";
import { statusText } from "../kinds/pods.ts";
import { FakeClock } from "../testing.ts";
import { isReady } from "./pod-state.ts";

const sets = "/apis/apps/v1/namespaces/work/replicasets";
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

const only = async (): Promise<Pod> => {
  const [pod, ...others] = await cluster.pods("work");
  assert.ok(pod !== undefined && others.length === 0, "there is exactly one pod");
  return pod;
};
const createPod = (name: string, spec: Record<string, unknown> = {}) => {
  const template = untrustedTemplate({ app: name });
  return cluster.must<Pod>("POST", pods, {
    metadata: { name, labels: { app: name } },
    spec: { ...(template["spec"] as object), ...spec },
  });
};

describe("a pod's life", () => {
  it("goes from Pending through ContainerCreating to Running and Ready", async () => {
    await createPod("one");
    await clock.advance(100);
    assert.equal(statusText(await only()), "ContainerCreating");
    await clock.advance(500);
    const running = await only();
    assert.equal(running.status?.phase, "Running");
    assert.equal(isReady(running), false);
    assert.match(running.status?.podIP ?? "", /^10\.10\d\.0\.\d+$/);
    await clock.advance(1_000);
    assert.equal(isReady(await only()), true);
  });

  it("waits for the probes' initial delay before it is ready", async () => {
    const probe = { httpGet: { port: 8080 }, initialDelaySeconds: 20 };
    await createPod("one", { containers: [{ name: "app", image: "app:1", readinessProbe: probe }] });
    await clock.advance(15_000);
    assert.equal(isReady(await only()), false);
    await clock.advance(7_000);
    assert.equal(isReady(await only()), true);
  });

  it("ends within its grace period, or is killed at its end", async () => {
    await createPod("quick");
    await createPod("stubborn");
    cluster.behaviours.set("deaf", {
      matches: ({ metadata }) => metadata?.name === "stubborn",
      behaviour: { stopMs: 3_600_000 },
    });
    await clock.advance(3_000);
    for (const name of ["quick", "stubborn"]) await cluster.must("DELETE", `${pods}/${name}`);
    await clock.advance(2_500);
    assert.equal(statusText(await only()), "Terminating");
    await clock.advance(25_000);
    assert.equal((await cluster.pods("work")).length, 1);
    await clock.advance(5_000);
    assert.deepEqual(await cluster.pods("work"), []);
  });

  it("crash-loops by image, counts its restarts, and recovers when the rule is removed", async () => {
    cluster.behaviours.set("crash", { image: "*broken*", behaviour: { crashAfterMs: 2_000 } });
    await cluster.must("POST", sets, replicaSet("web", 1, "registry.example/broken:1"));
    await clock.advance(5_000);
    const crashed = await only();
    assert.equal(statusText(crashed), "CrashLoopBackOff");
    assert.equal(crashed.status?.phase, "Running");
    assert.equal(crashed.status?.containerStatuses?.[0]?.restartCount, 1);
    assert.equal(crashed.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 1);
    await clock.advance(60_000);
    const restarts = (await only()).status?.containerStatuses?.[0]?.restartCount ?? 0;
    assert.ok(restarts >= 2, `restarted ${restarts} times`);
    cluster.behaviours.remove("crash");
    await clock.advance(300_000);
    assert.equal(isReady(await only()), true);
  });

  it("shows image pull errors and recovers when the image appears", async () => {
    cluster.behaviours.set("gone", { image: "app:9", behaviour: { image: "missing" } });
    await cluster.must("POST", sets, replicaSet("web", 1, "app:9"));
    await clock.advance(500);
    assert.equal(statusText(await only()), "ErrImagePull");
    await clock.advance(2_000);
    assert.equal(statusText(await only()), "ImagePullBackOff");
    assert.equal((await only()).status?.phase, "Pending");
    assert.equal((await only()).status?.podIP, undefined);
    cluster.behaviours.remove("gone");
    await clock.advance(30_000);
    assert.equal(isReady(await only()), true);
  });

  it("can be slow to start, never ready, or killed from outside", async () => {
    cluster.behaviours.set("slow", { image: "app:1", behaviour: { startMs: 30_000, readyMs: "never" } });
    await cluster.must("POST", sets, replicaSet("web", 1));
    await clock.advance(20_000);
    assert.equal(statusText(await only()), "ContainerCreating");
    await clock.advance(600_000);
    const pod = await only();
    assert.deepEqual([statusText(pod), isReady(pod)], ["Running", false]);
    await cluster.killPod(
      { namespace: "work", name: pod.metadata?.name ?? "" },
      new AbortController().signal,
    );
    await clock.advance(5_000);
    assert.notEqual((await only()).metadata?.uid, pod.metadata?.uid);
  });

  it("starts only when a node fits, and shows the reason until then", async () => {
    await createPod("picky", { nodeSelector: { disk: "fast" } });
    await clock.advance(1_000);
    const [condition] = (await only()).status?.conditions ?? [];
    assert.equal(condition?.reason, "Unschedulable");
    assert.match(
      condition?.message ?? "",
      /^0\/6 nodes are available: 3 node\(s\) didn't match Pod's node affinity/,
    );
    const node = await cluster.must<Node>("GET", "/api/v1/nodes/untrusted-zone-b");
    const labels = { ...node.metadata?.labels, disk: "fast" };
    await cluster.must("PUT", "/api/v1/nodes/untrusted-zone-b", {
      ...node,
      metadata: { ...node.metadata, labels },
    });
    await clock.advance(3_000);
    assert.equal((await only()).spec?.nodeName, "untrusted-zone-b");
  });
});

describe("a lost node", () => {
  it("keeps its pods, unready, for five minutes; then they are recreated elsewhere", async () => {
    await cluster.must("POST", sets, replicaSet("web", 3));
    await clock.advance(3_000);
    const pod = (await cluster.pods("work")).find(({ spec }) => spec?.nodeName === "untrusted-zone-a");
    cluster.nodes.lose("untrusted-zone-a");
    await clock.advance(60_000);
    const stranded = await cluster.must<Pod>("GET", `${pods}/${pod?.metadata?.name}`);
    assert.equal(isReady(stranded), false);
    assert.equal((await cluster.pods("work")).length, 3);
    await clock.advance(250_000);
    const later = await cluster.pods("work");
    assert.equal(later.filter(isReady).length, 3);
    assert.equal(later.length, 4, "the stranded pod cannot end without its kubelet");
    assert.ok(later.filter(isReady).every(({ spec }) => spec?.nodeName !== "untrusted-zone-a"));
    cluster.nodes.restore("untrusted-zone-a");
    await clock.advance(40_000);
    assert.equal((await cluster.pods("work")).length, 3);
    const node = await cluster.must<Node>("GET", "/api/v1/nodes/untrusted-zone-a");
    assert.deepEqual(
      node.spec?.taints?.map(({ key }) => key),
      ["karpenter.sh/nodepool"],
    );
  });

  it("that comes back in time keeps its pods", async () => {
    await cluster.must("POST", sets, replicaSet("web", 3));
    await clock.advance(3_000);
    const before = (await cluster.pods("work")).map(({ metadata }) => metadata?.uid).sort();
    cluster.nodes.lose("untrusted-zone-b");
    await clock.advance(60_000);
    cluster.nodes.restore("untrusted-zone-b");
    await clock.advance(10_000);
    const after = await cluster.pods("work");
    assert.deepEqual(after.map(({ metadata }) => metadata?.uid).sort(), before);
    assert.equal(after.filter(isReady).length, 3);
  });
});

describe("disruption budgets", () => {
  const budgets = "/apis/policy/v1/namespaces/work/poddisruptionbudgets";
  const evict = (pod: Pod | undefined) =>
    cluster.request("POST", `${pods}/${pod?.metadata?.name}/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: pod?.metadata?.name },
    });

  it("allow an eviction while enough pods are healthy, and reject the next with 429", async () => {
    await cluster.must("POST", "/apis/apps/v1/namespaces/work/deployments", deployment("web", 3));
    await cluster.must("POST", budgets, {
      metadata: { name: "web" },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: "web" } } },
    });
    await clock.advance(5_000);
    const { status } = await cluster.must<PodDisruptionBudget>("GET", `${budgets}/web`);
    assert.equal(status?.expectedPods, 3);
    assert.equal(status?.desiredHealthy, 2);
    assert.equal(status?.currentHealthy, 3);
    assert.equal(status?.disruptionsAllowed, 1);
    const [first, second] = await cluster.pods("work");
    assert.equal((await evict(first)).status, 201);
    await clock.settle();
    assert.equal((await evict(second)).status, 429);
    await clock.advance(10_000);
    assert.equal((await evict(second)).status, 201);
  });

  it("with an absolute minimum count the existing pods", async () => {
    await cluster.must("POST", sets, replicaSet("web", 1));
    await cluster.must("POST", budgets, {
      metadata: { name: "web" },
      spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
    });
    await clock.advance(5_000);
    assert.equal((await evict(await only())).status, 429);
    const { status } = await cluster.must<PodDisruptionBudget>("GET", `${budgets}/web`);
    assert.deepEqual([status?.disruptionsAllowed, status?.conditions?.[0]?.reason], [0, "InsufficientPods"]);
  });
});

describe("namespaces", () => {
  it("get a default service account and the root certificate, again if they are deleted", async () => {
    const account = "/api/v1/namespaces/work/serviceaccounts/default";
    assert.equal((await cluster.request("GET", account)).status, 200);
    assert.equal(
      (await cluster.request("GET", "/api/v1/namespaces/work/configmaps/kube-root-ca.crt")).status,
      200,
    );
    await cluster.must("DELETE", account);
    await clock.settle();
    assert.equal((await cluster.request("GET", account)).status, 200);
  });

  it("are removed when everything in them is gone, including pods", async () => {
    await cluster.must("POST", sets, replicaSet("web", 3));
    await cluster.must("POST", "/api/v1/namespaces/work/secrets", { metadata: { name: "pull" } });
    await clock.advance(3_000);
    await cluster.must("DELETE", "/api/v1/namespaces/work");
    await clock.advance(500);
    const going = await cluster.must<{ status: { phase: string } }>("GET", "/api/v1/namespaces/work");
    assert.equal(going.status.phase, "Terminating");
    await clock.advance(5_000);
    assert.equal((await cluster.request("GET", "/api/v1/namespaces/work")).status, 404);
    assert.deepEqual(await cluster.pods("work"), []);
  });

  it("stay while content has a finalizer", async () => {
    const map = "/api/v1/namespaces/work/configmaps/held";
    const metadata = { name: "held", finalizers: ["example.com/hold"] };
    await cluster.must("POST", "/api/v1/namespaces/work/configmaps", { metadata });
    await cluster.must("DELETE", "/api/v1/namespaces/work");
    await clock.advance(30_000);
    assert.equal((await cluster.request("GET", "/api/v1/namespaces/work")).status, 200);
    await cluster.must("PUT", map, { metadata: { name: "held" } });
    await clock.advance(5_000);
    assert.equal((await cluster.request("GET", "/api/v1/namespaces/work")).status, 404);
  });
});

describe("all controllers together", () => {
  it("write nothing once everything is in sync", async () => {
    await cluster.must("POST", "/apis/apps/v1/namespaces/work/deployments", deployment("web", 3));
    await clock.advance(30_000);
    const before = cluster.dump();
    await clock.advance(1_200_000);
    assert.equal(cluster.dump(), before);
  });

  it("create the same cluster from the same seed, and another from another seed", async () => {
    const run = async (seed: number) => {
      const ownClock = new FakeClock();
      const own = await startTestCluster(ownClock, { seed });
      await own.must("POST", "/api/v1/namespaces", { metadata: { name: "work" } });
      await own.must("POST", "/apis/apps/v1/namespaces/work/deployments", deployment("web", 4));
      await ownClock.advance(3_000);
      own.nodes.lose("untrusted-zone-a");
      await ownClock.advance(400_000);
      const dump = own.dump();
      await own.stop();
      assert.equal(ownClock.timerCount, 0);
      return dump;
    };
    const first = await run(7);
    assert.equal(await run(7), first);
    assert.notEqual(await run(8), first);
  });

  it("stop at any time without leaving a timer", async () => {
    await cluster.must("POST", sets, replicaSet("web", 20));
    await clock.advance(250);
    await cluster.stop();
    assert.equal(clock.timerCount, 0);
  });

  it("stop before their first list", async () => {
    const ownClock = new FakeClock();
    const own = await startTestCluster(ownClock);
    await own.stop();
    await own.done;
    assert.equal(ownClock.timerCount, 0);
  });

  it("survive a server that drops every watch", async () => {
    await cluster.must("POST", sets, replicaSet("web", 2));
    for (let round = 0; round < 5; round++) {
      cluster.closeWatches();
      await clock.advance(500);
    }
    await clock.advance(10_000);
    assert.equal((await cluster.pods("work")).filter(isReady).length, 2);
  });
});
