// The controllers that make a cluster live: what becomes of a ReplicaSet, a Deployment, a budget.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { eventually } from "../eventually.ts";
import {
  appsDeployment,
  appsDeployments,
  container,
  disruptionBudget,
  pendingPod,
  podDisruptionBudgets,
  pods,
  replicaSet,
  replicaSets,
} from "../fixtures.ts";
import { at, type Kind, type Manifest } from "../manifest.ts";
import type { Trial } from "../trial.ts";

type Fields = Readonly<Record<string, unknown>>;

const mine = { labelSelector: "app=a" };

function conditionOf(object: Manifest, type: string): unknown {
  const conditions = (at(object, "status.conditions") ?? []) as readonly Fields[];
  return conditions.find((one) => one["type"] === type)?.["status"];
}

function eventuallyStatus(trial: Trial, kind: Kind, expected: Fields): Promise<Manifest> {
  return eventually(`${kind.kind} a has the status ${JSON.stringify(expected)}`, async () => {
    const found = await trial.read(kind, "a");
    for (const [field, value] of Object.entries(expected)) assert.equal(at(found, `status.${field}`), value);
    assert.equal(at(found, "status.observedGeneration"), found.metadata?.generation);
    return found;
  });
}

async function podsOf(trial: Trial): Promise<readonly Manifest[]> {
  return (await trial.list(pods, mine)).items;
}

export const controllerCases = [
  contractCase("ReplicaSet: of 3 gets 3 pods that become Ready, with addresses and nodes", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 3 }));
    await eventuallyStatus(trial, replicaSets, { replicas: 3, readyReplicas: 3, availableReplicas: 3 });
    const made = await podsOf(trial);
    assert.equal(made.length, 3);
    for (const pod of made) {
      assert.equal(at(pod, "status.phase"), "Running");
      assert.equal(conditionOf(pod, "Ready"), "True");
      assert.equal(conditionOf(pod, "ContainersReady"), "True");
      assert.equal(at(pod, "status.containerStatuses.0.ready"), true);
      assert.ok(at(pod, "spec.nodeName"));
    }
    assert.equal(new Set(made.map((pod) => at(pod, "status.podIP"))).size, 3);
  }),
  contractCase("ReplicaSet: its pods name it as their controller", async (trial) => {
    const owner = await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    const [pod] = await eventually("the pod is there", async () => {
      const made = await podsOf(trial);
      assert.equal(made.length, 1);
      return made;
    });
    assert.deepEqual(pod?.metadata?.ownerReferences, [
      {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        name: "a",
        uid: owner.metadata?.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
    assert.match(pod?.metadata?.name ?? "", /^a-[a-z0-9]{5}$/);
    assert.equal(pod?.metadata?.generateName, "a-");
  }),
  contractCase("ReplicaSet: a pod that is deleted is replaced", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 2 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 2 });
    const [first] = await podsOf(trial);
    const name = first?.metadata?.name ?? "";
    await trial.delete(pods, name);
    await eventually("two others are Ready", async () => {
      const made = await podsOf(trial);
      assert.ok(!made.some((pod) => pod.metadata?.name === name), "not yet");
      assert.equal(made.filter((pod) => conditionOf(pod, "Ready") === "True").length, 2);
    });
  }),
  contractCase("ReplicaSet: scaled down, it keeps as many pods as asked for", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 3 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 3 });
    const before = new Set((await podsOf(trial)).map((pod) => pod.metadata?.uid));
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    await eventuallyStatus(trial, replicaSets, { replicas: 1, readyReplicas: 1 });
    // The status does not count a pod that is being deleted; its node takes a moment to remove it.
    await eventually("one of the three is left", async () => {
      const after = await podsOf(trial);
      assert.equal(after.length, 1);
      assert.ok(before.has(after[0]?.metadata?.uid), "not yet");
    });
  }),
  contractCase("ReplicaSet: scaled to 0, its status has no ready count", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 1 });
    await trial.apply(replicaSets, replicaSet("a", { replicas: 0 }));
    const found = await eventuallyStatus(trial, replicaSets, { replicas: 0 });
    assert.equal(at(found, "status.readyReplicas"), undefined);
  }),
  contractCase("ReplicaSet: a changed template leaves the pods that run", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 2 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 2 });
    const before = await trial.names(pods, mine);
    const next = replicaSet("a", { replicas: 2 }, { containers: [container("app", { image: "other:2" })] });
    await trial.apply(replicaSets, next);
    await eventuallyStatus(trial, replicaSets, { replicas: 2 });
    assert.deepEqual(await trial.names(pods, mine), before);
  }),
  contractCase("ReplicaSet: a pod without an owner that matches is adopted", async (trial) => {
    await trial.create(pods, pendingPod("orphan", {}, { labels: { app: "a" } }));
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    await eventually("the orphan has an owner", async () => {
      const orphan = await trial.read(pods, "orphan");
      assert.equal(orphan.metadata?.ownerReferences?.[0]?.name, "a");
    });
    assert.deepEqual(await trial.names(pods, mine), ["orphan"]);
  }),
  contractCase("ReplicaSet: a pod that no longer matches is released and replaced", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 1 });
    const name = (await podsOf(trial))[0]?.metadata?.name ?? "";
    await trial.patch(pods, name, "merge", { metadata: { labels: { app: "free" } } });
    await eventually("it is free and another one is there", async () => {
      assert.deepEqual((await trial.read(pods, name)).metadata?.ownerReferences ?? [], []);
      assert.equal((await podsOf(trial)).length, 1);
    });
  }),
  contractCase("ReplicaSet: pods that failed are replaced", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 1 });
    const name = (await podsOf(trial))[0]?.metadata?.name ?? "";
    await trial.patch(pods, name, "merge", { status: { phase: "Failed" } }, { subresource: "status" });
    await eventually("another pod runs", async () => {
      const running = (await podsOf(trial)).filter((pod) => at(pod, "status.phase") === "Running");
      assert.equal(running.length, 1);
      assert.notEqual(running[0]?.metadata?.name, name);
    });
  }),
  contractCase("Deployment: makes a ReplicaSet named by its template's hash", async (trial) => {
    await trial.apply(appsDeployments, appsDeployment("a", { replicas: 2 }));
    await eventuallyStatus(trial, appsDeployments, { replicas: 2, readyReplicas: 2, updatedReplicas: 2 });
    const [set, ...others] = (await trial.list(replicaSets, mine)).items;
    assert.deepEqual(others, []);
    const hash = set?.metadata?.labels?.["pod-template-hash"];
    assert.equal(set?.metadata?.name, `a-${hash}`);
    assert.equal(set?.metadata?.ownerReferences?.[0]?.kind, "Deployment");
    assert.equal(at(set, "spec.selector.matchLabels.pod-template-hash"), hash);
    const [pod] = await podsOf(trial);
    assert.equal(pod?.metadata?.labels?.["pod-template-hash"], hash);
  }),
  contractCase("Deployment: is Available and Progressing when its pods are", async (trial) => {
    await trial.apply(appsDeployments, appsDeployment("a", { replicas: 1 }));
    await eventually("both conditions are true", async () => {
      const found = await trial.read(appsDeployments, "a");
      assert.equal(conditionOf(found, "Available"), "True");
      assert.equal(conditionOf(found, "Progressing"), "True");
    });
  }),
  contractCase("Deployment: rolls to a new image without losing availability", async (trial) => {
    const spec = { replicas: 3, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } };
    await trial.apply(appsDeployments, appsDeployment("a", spec));
    const before = await eventuallyStatus(trial, appsDeployments, { availableReplicas: 3 });
    const resourceVersion = before.metadata?.resourceVersion ?? "";
    const watch = trial.watch(appsDeployments, { resourceVersion });
    const sets = trial.watch(replicaSets, { resourceVersion });
    const next = appsDeployment("a", spec, { containers: [container("app", { image: "other:2" })] });
    await trial.apply(appsDeployments, next);
    const seen = await watch.until((event) => {
      if (event.type !== "MODIFIED") return false;
      const { object } = event;
      if (at(object, "status.observedGeneration") !== object.metadata?.generation) return false;
      return at(object, "status.updatedReplicas") === 3 && at(object, "status.replicas") === 3;
    });
    for (const event of seen) {
      if (event.type === "BOOKMARK") continue;
      assert.ok(Number(at(event.object, "status.availableReplicas")) >= 3);
    }
    // The surge is a limit on what the ReplicaSets are told. Their statuses lag, and the sum of those may be higher.
    const told = new Map<string, number>();
    await sets.until((event) => {
      if (event.type === "BOOKMARK") return false;
      const { object } = event;
      told.set(object.metadata?.name ?? "", Number(at(object, "spec.replicas")));
      const sizes = [...told.values()];
      const sum = sizes.reduce((all, size) => all + size, 0);
      assert.ok(sum <= 4, `${sizes}`);
      return sizes.length === 2 && sizes.includes(0) && sizes.includes(3);
    });
    await eventually("only pods of the new image are left", async () => {
      const images = (await podsOf(trial)).map((pod) => at(pod, "spec.containers.0.image"));
      assert.deepEqual(images, ["other:2", "other:2", "other:2"]);
    });
  }),
  contractCase("Deployment: keeps the old ReplicaSet at 0 and counts revisions", async (trial) => {
    await trial.apply(appsDeployments, appsDeployment("a", { replicas: 1 }));
    await eventuallyStatus(trial, appsDeployments, { availableReplicas: 1, updatedReplicas: 1 });
    const containers = [container("app", { image: "other:2" })];
    await trial.apply(appsDeployments, appsDeployment("a", { replicas: 1 }, { containers }));
    await eventually("two revisions, the first one empty", async () => {
      const { items } = await trial.list(replicaSets, mine);
      const shown = items.map((set) => {
        const revision = set.metadata?.annotations?.["deployment.kubernetes.io/revision"];
        return `${revision}: ${at(set, "spec.replicas")}`;
      });
      assert.deepEqual(shown.sort(), ["1: 0", "2: 1"]);
    });
  }),
  contractCase("Deployment: goes back to the ReplicaSet of an earlier template", async (trial) => {
    const other = { containers: [container("app", { image: "other:2" })] };
    await trial.apply(appsDeployments, appsDeployment("a"));
    await eventuallyStatus(trial, appsDeployments, {});
    await trial.apply(appsDeployments, appsDeployment("a", {}, other));
    await eventually("there are two", async () => {
      assert.equal((await trial.names(replicaSets, mine)).length, 2);
    });
    await trial.apply(appsDeployments, appsDeployment("a"));
    await eventually("the third revision is the first ReplicaSet again", async () => {
      const { items } = await trial.list(replicaSets, mine);
      assert.equal(items.length, 2);
      const revisions = items.map((set) => set.metadata?.annotations?.["deployment.kubernetes.io/revision"]);
      assert.deepEqual(revisions.sort(), ["2", "3"]);
    });
  }),
  contractCase("Deployment: scaled, it scales its ReplicaSet in place", async (trial) => {
    await trial.apply(appsDeployments, appsDeployment("a", { replicas: 1 }));
    await eventuallyStatus(trial, appsDeployments, { availableReplicas: 1 });
    await trial.apply(appsDeployments, appsDeployment("a", { replicas: 2 }));
    await eventuallyStatus(trial, appsDeployments, { availableReplicas: 2 });
    assert.equal((await trial.names(replicaSets, mine)).length, 1);
  }),
  contractCase("Deployment: Recreate ends the old pods before it starts new ones", async (trial) => {
    const spec = { replicas: 2, strategy: { type: "Recreate" } };
    await trial.apply(appsDeployments, appsDeployment("a", spec));
    await eventuallyStatus(trial, appsDeployments, { availableReplicas: 2 });
    const { resourceVersion } = await trial.list(pods);
    const watch = trial.watch(pods, { resourceVersion, ...mine });
    const containers = [container("app", { image: "other:2" })];
    await trial.apply(appsDeployments, appsDeployment("a", spec, { containers }));
    const events = await watch.until((event) => event.type === "ADDED");
    assert.equal(events.filter((event) => event.type === "DELETED").length, 2);
  }),
  contractCase("Deployment: deleted, it takes ReplicaSets and pods along", async (trial) => {
    await trial.apply(appsDeployments, appsDeployment("a", { replicas: 1 }));
    await eventuallyStatus(trial, appsDeployments, { availableReplicas: 1 });
    await trial.delete(appsDeployments, "a");
    await eventually("everything is gone", async () => {
      assert.deepEqual(await trial.names(replicaSets, mine), []);
      assert.deepEqual(await trial.names(pods, mine), []);
    });
  }),
  contractCase("budget: counts the healthy pods and says what may be disrupted", async (trial) => {
    await trial.apply(podDisruptionBudgets, disruptionBudget("a", { maxUnavailable: 1 }));
    await trial.apply(replicaSets, replicaSet("a", { replicas: 3 }));
    await eventuallyStatus(trial, podDisruptionBudgets, {
      expectedPods: 3,
      currentHealthy: 3,
      desiredHealthy: 2,
      disruptionsAllowed: 1,
    });
  }),
  contractCase("budget: minAvailable of all pods allows none", async (trial) => {
    await trial.apply(podDisruptionBudgets, disruptionBudget("a", { minAvailable: 1 }));
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    const budget = await eventuallyStatus(trial, podDisruptionBudgets, {
      currentHealthy: 1,
      desiredHealthy: 1,
      disruptionsAllowed: 0,
    });
    assert.equal(conditionOf(budget, "DisruptionAllowed"), "False");
  }),
  contractCase("budget: without pods allows nothing", async (trial) => {
    await trial.apply(podDisruptionBudgets, disruptionBudget("a", { maxUnavailable: 1 }));
    await eventuallyStatus(trial, podDisruptionBudgets, { expectedPods: 0, disruptionsAllowed: 0 });
  }),
  contractCase("pod: scheduled, it is deleted once its containers have ended", async (trial) => {
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 1 });
    const name = (await podsOf(trial))[0]?.metadata?.name ?? "";
    assert.deepEqual(await trial.delete(pods, name), { kind: "deleting" });
    await eventually("it is gone", async () => assert.equal(await trial.find(pods, name), undefined));
  }),
  contractCase("pod: with another scheduler's name it is left alone", async (trial) => {
    await trial.create(pods, pendingPod("other"));
    await trial.apply(replicaSets, replicaSet("a", { replicas: 1 }));
    await eventuallyStatus(trial, replicaSets, { readyReplicas: 1 });
    const other = await trial.read(pods, "other");
    assert.equal(at(other, "spec.nodeName"), undefined);
    assert.equal(at(other, "status.phase"), "Pending");
  }),
];
