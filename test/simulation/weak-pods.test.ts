// Pods that are less isolated than their template are replaced, one at a time, and only as long as that helps.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { events, podDisruptionBudgets, pods, replicaSets } from "../../src/kube/resources.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { createKeptLog } from "../support/kept-log.ts";
import { withoutEvents } from "./recording-kube-api.ts";
import { type AgentOverrides, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const hole = "dev.gvisor.internal.hole";

async function createWorld(replicas: number, overrides: AgentOverrides = {}) {
  const kept = createKeptLog();
  const world = await SimulatedRegion.create({ withPods: true, log: kept.log });
  await world.setDeployment(1, { replicas });
  const agent = await world.startAgent(overrides);
  const running = async () => (await world.list(pods)).filter(({ status }) => status?.phase === "Running");
  await world.until("its pods run", async () => (await running()).length === replicas);
  return { world, agent, running, kept };
}

const nameOf = ({ metadata }: Pod) => metadata?.name ?? "";
const uidOf = ({ metadata }: Pod) => metadata?.uid ?? "";
const evictionsOf = (agent: SimulatedAgent) => agent.writes.filter(({ kind }) => kind === "Eviction");

function annotate(world: SimulatedRegion, pod: Pod, annotations: Record<string, string>) {
  const { namespace = "", name = "" } = pod.metadata ?? {};
  const manifest = { metadata: { namespace, name, annotations } };
  return world.api.apply(pods, manifest, { fieldManager: "someone", force: true }, never);
}

/** As a webhook that lets every pod see the processes of its node. */
function withHostProcesses(pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, containers: pod.spec?.containers ?? [], hostPID: true } };
}

const isWeak = ({ metadata, spec }: Pod) =>
  spec?.hostPID === true || metadata?.annotations?.[hole] !== undefined;

async function replicasOf(world: SimulatedRegion): Promise<number | undefined> {
  const set = await world.api.get(replicaSets, { namespace: "acme", name: "web-1" }, {}, never);
  return set?.spec?.replicas;
}

function reasonOf({ controller }: SimulatedAgent): string {
  const [object] = controller.objects({ onlyTroubled: true });
  return object?.reason ?? "";
}

async function eventsOf(world: SimulatedRegion, wanted: string) {
  return (await world.list(events)).filter(({ reason }) => reason === wanted);
}

test("a weak pod is replaced, with an Event and a log line, and no other pod is touched", async () => {
  const { world, agent, running, kept } = await createWorld(3);
  const [target = assert.fail("no pod"), ...others] = await running();
  await annotate(world, target, { [hole]: "1" });
  await world.until("it is replaced", async () => {
    const now = await running();
    return now.length === 3 && !now.map(nameOf).includes(nameOf(target));
  });
  const names = (await running()).map(nameOf);
  for (const other of others) assert.ok(names.includes(nameOf(other)), "another pod is gone");
  await world.until("all is well", () => reasonOf(agent) === "", 120_000);
  const [told, ...more] = await eventsOf(world, "Evicted");
  assert.deepEqual(more, []);
  assert.deepEqual([told?.involvedObject.name, told?.involvedObject.uid], [nameOf(target), uidOf(target)]);
  const reason = `it is less isolated than its template: annotation ${hole}, changed by field manager "someone"`;
  assert.equal(told?.message, `krane evicted this pod: ${reason}.`);
  assert.deepEqual(
    kept.of("evicted a pod").map((line) => [line["name"], line["reason"]]),
    [[nameOf(target), reason]],
  );
  await world.stop();
});

test("several weak pods are replaced one after the other", async () => {
  const { world, running } = await createWorld(3);
  for (const pod of await running()) await annotate(world, pod, { [hole]: "1" });
  let fewest = 3;
  await world.until(
    "all are replaced",
    async () => {
      const now = await running();
      fewest = Math.min(fewest, now.length);
      return now.length === 3 && !now.some(isWeak);
    },
    900_000,
  );
  assert.ok(fewest >= 2, `only ${fewest} pods were left`);
  await world.stop();
});

test("no more pods of a namespace are evicted than half of the budget allows", async () => {
  const { world, agent, running } = await createWorld(4);
  for (const pod of await running()) await annotate(world, pod, { [hole]: "1" });
  await world.clock.advance(500_000);
  assert.equal(evictionsOf(agent).length, 2);
  assert.match(reasonOf(agent), /its namespace has used half of the budget of 3 evictions per 10 minutes/);
  await world.until("the last one too", async () => !(await running()).some(isWeak), 300_000);
  await world.stop();
});

test("a PodDisruptionBudget is respected, and its refusal is the reason", async () => {
  const { world, agent, running } = await createWorld(2);
  const matchLabels = { "unkey.com/deployment.id": "d_1" };
  const budget = {
    metadata: { name: "all", namespace: "acme" },
    spec: { minAvailable: 2, selector: { matchLabels } },
  };
  await world.api.create(podDisruptionBudgets, budget, {}, never);
  await world.clock.advance(5_000);
  const [target = assert.fail("no pod")] = await running();
  await annotate(world, target, { [hole]: "1" });
  await world.clock.advance(300_000);
  assert.match(reasonOf(agent), /a PodDisruptionBudget does not allow its eviction/);
  assert.ok((await running()).map(uidOf).includes(uidOf(target)), "it was ended against the budget");
  assert.deepEqual(await eventsOf(world, "Evicted"), []);
  await world.api.delete(podDisruptionBudgets, { namespace: "acme", name: "all" }, {}, never);
  await world.until("it is replaced", async () => !(await running()).some(isWeak), 120_000);
  await world.stop();
});

test("two PodDisruptionBudgets, with which Kubernetes evicts no pod, are told, and others are replaced meanwhile", async () => {
  const { world, agent } = await createWorld(1);
  await world.setDeployment(2, { replicas: 1 });
  const runningOf = async (id: string) =>
    (await world.list(pods)).filter(
      ({ metadata, status }) =>
        status?.phase === "Running" && metadata?.labels?.["unkey.com/deployment.id"] === id,
    );
  await world.until("the other one runs", async () => (await runningOf("d_2")).length === 1);
  for (const name of ["one", "other"]) {
    const selector = { matchLabels: { "unkey.com/deployment.id": "d_1" } };
    const metadata = { name, namespace: "acme" };
    await world.api.create(
      podDisruptionBudgets,
      { metadata, spec: { minAvailable: 0, selector } },
      {},
      never,
    );
  }
  const [kept = assert.fail("no pod")] = await runningOf("d_1");
  await annotate(world, kept, { [hole]: "1" });
  await world.clock.advance(300_000);
  assert.match(
    reasonOf(agent),
    /more than one PodDisruptionBudget covers it, and Kubernetes evicts no such pod$/,
  );
  const [target = assert.fail("no pod")] = await runningOf("d_2");
  await annotate(world, target, { [hole]: "1" });
  await world.until("it is replaced", async () => !(await runningOf("d_2")).some(isWeak), 60_000);
  assert.ok((await runningOf("d_1")).map(uidOf).includes(uidOf(kept)));
  await world.stop();
});

test("if the replacement is as weak, the deployment gets no new pods and loses no others, until that ends", async () => {
  const { world, agent, running } = await createWorld(3);
  const [target = assert.fail("no pod"), ...others] = await running();
  world.podWebhook = withHostProcesses;
  await annotate(world, target, { [hole]: "1" });
  await world.until("it is held", () => reasonOf(agent).startsWith("the cluster lowers"));
  assert.equal(
    reasonOf(agent),
    "the cluster lowers the isolation of pods of ReplicaSet acme/web-1 when it creates them: hostPID, changed by unknown. It gets no new pods. Look for a mutating webhook or admission policy, or for somebody who creates such pods by hand",
  );
  await world.until("the weak one is gone", async () => !(await world.list(pods)).some(isWeak), 120_000);
  assert.equal(await replicasOf(world), 2);
  assert.deepEqual((await running()).map(uidOf).sort(), others.map(uidOf).sort());
  assert.equal(evictionsOf(agent).length, 1);
  const [held] = await eventsOf(world, "Held");
  assert.match(held?.message ?? "", /^krane limited this object to 2 pods: the cluster lowers the isolation/);
  const writes = withoutEvents(agent.writes).length;
  await world.clock.advance(3_000_000);
  assert.equal(withoutEvents(agent.writes).length, writes);

  // It tries with one more pod, and stops again.
  await world.clock.advance(1_800_000);
  assert.equal(await replicasOf(world), 2);
  assert.ok(withoutEvents(agent.writes).length > writes, "it never tried again");
  assert.deepEqual((await running()).map(uidOf).sort(), others.map(uidOf).sort());

  world.podWebhook = undefined;
  await world.until("it has all its pods", async () => (await running()).length === 3, 5_000_000);
  await world.until("all is well", () => reasonOf(agent) === "", 600_000);
  assert.equal(await replicasOf(world), 3);
  assert.equal(evictionsOf(agent).length, 1);
  await world.stop();
});

test("a deployment that is held stays so after a restart, and tries one pod an hour later", async () => {
  const { world, agent, running } = await createWorld(1);
  const [target = assert.fail("no pod")] = await running();
  let made = 0;
  world.podWebhook = (pod) => {
    made += 1;
    return withHostProcesses(pod);
  };
  await annotate(world, target, { [hole]: "1" });
  await world.until("it is held", async () => (await replicasOf(world)) === 0);
  await world.setDeployment(1, { replicas: 5 });
  await world.clock.advance(60_000);
  assert.deepEqual([await replicasOf(world), made], [0, 2]);
  await agent.stop();

  const next = await world.startAgent();
  await world.clock.advance(600_000);
  assert.deepEqual([await replicasOf(world), made], [0, 2]);
  assert.deepEqual(withoutEvents(next.writes), []);
  assert.match(
    reasonOf(next),
    /^the cluster lowers the isolation of pods of .*, as an earlier leader saw\. It gets no new pods/,
  );
  await world.until(
    "it has tried one more",
    async () => made > 2 && (await replicasOf(world)) === 0,
    4_000_000,
  );
  assert.deepEqual([made, evictionsOf(next).length], [3, 0]);

  world.podWebhook = undefined;
  await next.stop();
  await world.startAgent();
  await world.until("it has all its pods", async () => (await running()).length === 5, 5_000_000);
  const [set] = await world.replicaSets();
  assert.equal(set?.metadata?.annotations?.[annotationKeys.held], undefined);
  await world.stop();
});

test("while it is held, edits of others are repaired, and a new version tries with one pod", async () => {
  const { world, agent, running } = await createWorld(3);
  const [target = assert.fail("no pod")] = await running();
  world.podWebhook = withHostProcesses;
  await annotate(world, target, { [hole]: "1" });
  await world.until("it is held", async () => (await replicasOf(world)) === 2);
  const [set = assert.fail("no ReplicaSet")] = await world.replicaSets();
  const edit = { op: "add", path: "/spec/template/spec/hostIPC", value: true } as const;
  await world.api.patch(replicaSets, set, [edit], { fieldManager: "someone" }, never);
  await world.until("the edit is undone", async () => {
    const set = await world.api.get(replicaSets, { namespace: "acme", name: "web-1" }, {}, never);
    return set?.spec?.template?.spec?.hostIPC === undefined;
  });
  assert.equal(await replicasOf(world), 2);
  world.podWebhook = undefined;
  await world.setDeployment(1, { replicas: 3, image: "registry.example/acme/web:2" });
  await world.until("it has all its pods", async () => (await running()).length === 3, 120_000);
  await world.until("all is well", () => reasonOf(agent) === "", 600_000);
  await world.stop();
});

test("somebody who debugs one pod after the other does not make the deployment lose its pods", async () => {
  const { world, agent, running } = await createWorld(1);
  for (const time of [1, 2]) {
    const [target = assert.fail("no pod")] = await running();
    await annotate(world, target, { [hole]: "1" });
    const isReplaced = async () => {
      const [pod] = await running();
      return pod !== undefined && uidOf(pod) !== uidOf(target);
    };
    await world.until(`it is replaced for the ${time}. time`, isReplaced, 600_000);
  }
  assert.equal(await replicasOf(world), 1);
  await world.until("all is well", () => reasonOf(agent) === "", 120_000);
  await world.stop();
});

test("pods of an older version that is as isolated are never touched", async () => {
  const { world, agent, running } = await createWorld(2);
  const before = (await running()).map(uidOf).sort();
  await world.setDeployment(1, { replicas: 2, image: "registry.example/acme/web:2", cpuMillicores: 100n });
  await world.clock.advance(300_000);
  assert.deepEqual((await running()).map(uidOf).sort(), before);
  assert.deepEqual(evictionsOf(agent), []);
  await world.stop();
});

async function createWeakPod(world: SimulatedRegion, owned: Pod, change: (pod: Pod) => Pod): Promise<void> {
  const { resourceVersion: _, managedFields: __, uid: ___, ...metadata } = owned.metadata ?? {};
  const annotations = { ...metadata.annotations, [hole]: "1" };
  const copy = {
    metadata: { ...metadata, name: "by-hand", annotations },
    ...(owned.spec && { spec: owned.spec }),
  };
  await world.api.create(pods, change(copy), {}, never);
}

test("a pod without krane's mark, of an older agent, is left alone", async () => {
  const { world, agent, running } = await createWorld(1);
  const [pod = assert.fail("no pod")] = await running();
  await createWeakPod(world, pod, (copy) => {
    const { [annotationKeys.templateHash]: _, ...annotations } = copy.metadata?.annotations ?? {};
    return { ...copy, metadata: { ...copy.metadata, annotations } };
  });
  await world.clock.advance(120_000);
  assert.deepEqual(evictionsOf(agent), []);
  await world.stop();
});

test("a pod of a ReplicaSet that krane did not seal is left alone, whatever its labels say", async () => {
  const { world, agent, running } = await createWorld(1);
  const [pod = assert.fail("no pod")] = await running();
  const [set = assert.fail("no ReplicaSet")] = await world.replicaSets();
  const { labels = {} } = set.metadata ?? {};
  const other = await world.api.create(
    replicaSets,
    {
      metadata: { name: "forged", namespace: "acme", labels },
      spec: { ...set.spec, replicas: 0, selector: set.spec?.selector ?? {} },
    },
    { fieldManager: "krane" },
    never,
  );
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "forged", uid: other.metadata?.uid ?? "" };
  await createWeakPod(world, pod, (copy) => ({
    ...copy,
    metadata: { ...copy.metadata, ownerReferences: [{ ...owner, controller: true }] },
  }));
  await world.clock.advance(120_000);
  assert.deepEqual(evictionsOf(agent), []);
  await world.stop();
});
