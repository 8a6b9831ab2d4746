// Pods that are less isolated than their template are replaced on a real Kubernetes, with the rights of the chart and
// under its admission policy.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createKubeApi } from "../../src/kube/client.ts";
import { listAll } from "../../src/kube/list-all.ts";
import { events, pods, replicaSets } from "../../src/kube/resources.ts";
import { withoutEvents } from "../simulation/recording-kube-api.ts";
import { deployment, region } from "../simulation/simulated-region.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";
import { installMutation } from "../support/mutating-policy.ts";

const cluster = clusterUnderTest();
const { signal } = new AbortController();
const { transport, close } = realServerTarget(cluster);
const api = createKubeApi(transport);
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent", "registry", "secrets"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
  await close();
});

type ClusterController = Awaited<ReturnType<typeof startClusterController>>;

const uidOf = ({ metadata }: Pod) => metadata?.uid ?? "";

/** A deployment with two pods that are ready. */
async function startDeployment(t: TestContext, overrides: { readonly resyncMs?: number } = {}) {
  const namespace = await cluster.freshNamespace(t);
  const plane = await createRegionPlane();
  await plane.admin.setDeployment(region, deployment(1, { replicas: 2, k8sNamespace: namespace }));
  const agent = await startClusterController(t, { cluster, account, plane }, overrides);
  // When the agent has stopped. Kubernetes empties the namespace some seconds after the test, and the agent of the next
  // one, which has the same region, would close the gaps that it saw meanwhile.
  const remains = "replicasets,pods,ciliumnetworkpolicies";
  t.after(() =>
    cluster.kubectl(["-n", namespace, "delete", remains, "--all", "--grace-period=0", "--force"]),
  );
  return { namespace, plane, agent, ready: await readyPods(namespace) };
}

async function podsIn(namespace: string): Promise<readonly Pod[]> {
  const { items } = await listAll(api, pods, { namespace }, (pod) => pod, signal);
  return items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
}

async function readyPods(namespace: string): Promise<readonly [Pod, Pod]> {
  return eventually("two pods are ready", async () => {
    const [one, other, ...more] = (await podsIn(namespace)).filter(({ status }) =>
      status?.conditions?.some(({ type, status: state }) => type === "Ready" && state === "True"),
    );
    assert.deepEqual(more, []);
    return [one ?? assert.fail("no pod is ready"), other ?? assert.fail("one pod is ready")] as const;
  });
}

/** As `kubectl debug` does. */
async function debug({ metadata }: Pod): Promise<void> {
  const body = { spec: { ephemeralContainers: [{ name: "debugger", image: "registry.example/debug:1" }] } };
  const path = `/api/v1/namespaces/${metadata?.namespace}/pods/${metadata?.name}/ephemeralcontainers?fieldManager=kubectl-debug`;
  const contentType = "application/strategic-merge-patch+json";
  const { status, body: answer } = await cluster.request({ method: "PATCH", path, body, contentType });
  assert.equal(status, 200, JSON.stringify(answer));
}

async function eventsOf(namespace: string, wanted: string) {
  const { items } = await listAll(api, events, { namespace }, (event) => event, signal);
  return items.filter(({ reason }) => reason === wanted);
}

function reasonOf({ controller }: ClusterController): string {
  return controller.objects({ onlyTroubled: true })[0]?.reason ?? "";
}

test("a pod that somebody debugs is evicted and replaced, and an Event says who did what", async (t) => {
  const { namespace, agent, ready } = await startDeployment(t);
  const [target, other] = ready;
  await debug(target);
  await eventually("it is replaced, and the other one is not", async () => {
    const uids = (await podsIn(namespace)).map(uidOf);
    assert.equal(uids.length, 2);
    assert.ok(!uids.includes(uidOf(target)), "the debugged pod is still there");
    assert.ok(uids.includes(uidOf(other)), "the other pod is gone");
  });
  const told = await eventually("the Event is there", async () => {
    const [event, ...more] = await eventsOf(namespace, "Evicted");
    assert.deepEqual(more, []);
    return event ?? assert.fail("no Event");
  });
  assert.equal(told.involvedObject.uid, uidOf(target));
  assert.equal(
    told.message,
    'krane evicted this pod: it is less isolated than its template: ephemeral container debugger, changed by field manager "kubectl-debug".',
  );
  await eventually("all is well", () => assert.equal(reasonOf(agent), ""));
  assert.equal(agent.kept.of("evicted a pod").length, 1);
});

test("a PodDisruptionBudget is respected", async (t) => {
  const { namespace, agent, ready } = await startDeployment(t);
  const [target] = ready;
  const selector = ["--selector=unkey.com/deployment.id=d_1", "--min-available=2"];
  await cluster.kubectl(["-n", namespace, "create", "poddisruptionbudget", "all", ...selector]);
  await eventually("the budget counts its pods", async () => {
    const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/all`;
    const { body } = await cluster.request({ path });
    const { status } = body as { readonly status?: { readonly currentHealthy?: number } };
    assert.equal(status?.currentHealthy, 2);
  });
  await debug(target);
  await eventually("its refusal is the reason", () => {
    assert.match(
      reasonOf(agent),
      /a PodDisruptionBudget does not allow its eviction: The disruption budget all needs/,
    );
  });
  assert.ok((await podsIn(namespace)).map(uidOf).includes(uidOf(target)), "it was ended against the budget");
  assert.deepEqual(await eventsOf(namespace, "Evicted"), []);
  await cluster.kubectl(["-n", namespace, "delete", "poddisruptionbudget", "all"]);
  await eventually("it is replaced", async () =>
    assert.ok(!(await podsIn(namespace)).map(uidOf).includes(uidOf(target)), "it is still there"),
  );
});

test("if admission weakens the replacement too, the deployment is held, and nothing more is ended", async (t) => {
  const { namespace, plane, agent, ready } = await startDeployment(t, { resyncMs: 1_000 });
  const [target, other] = ready;
  await installMutation(t, cluster, {
    name: `${namespace}.example.com`,
    namespace,
    rule: { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
    patch: '[JSONPatch{op: "add", path: "/spec/hostPID", value: true}]',
  });
  await eventually("the policy works", async () => {
    const { metadata, spec } = other;
    const { labels: _, ownerReferences: __, resourceVersion: ___, uid: ____, ...kept } = metadata ?? {};
    const copy = { metadata: { ...kept, name: "trial" }, ...(spec && { spec }) };
    const made = await api.create(pods, copy, { dryRun: true }, signal);
    assert.equal(made.spec?.hostPID, true, "it does not");
  });
  // Of pods with the same age in seconds, Kubernetes may remove any when the deployment shrinks.
  await eventually("the replacement will be younger by more than a second", () =>
    assert.ok(Date.now() - readyAtMs(other) > 2_000, "it would not"),
  );
  await debug(target);
  await eventually("it is held", () =>
    assert.equal(
      reasonOf(agent),
      `the cluster lowers the isolation of pods of ReplicaSet ${namespace}/web-1 when it creates them: hostPID, changed by unknown. It gets no new pods. Look for a mutating webhook or admission policy, or for somebody who creates such pods by hand`,
    ),
  );
  await eventually("only the isolated pod is left", async () =>
    assert.deepEqual((await podsIn(namespace)).map(uidOf), [uidOf(other)]),
  );
  const set = await api.get(replicaSets, { namespace, name: "web-1" }, {}, signal);
  assert.equal(set?.spec?.replicas, 1);
  await eventually("the Event is there", async () => {
    const [event] = await eventsOf(namespace, "Held");
    assert.match(
      event?.message ?? "",
      /^krane limited this object to 1 pod: the cluster lowers the isolation/,
    );
  });
  const writes = withoutEvents(agent.api.writes).length;
  await resyncTwice(agent);
  assert.equal(withoutEvents(agent.api.writes).length, writes);
  assert.equal(agent.kept.of("evicted a pod").length, 1);

  // The next process continues with it.
  await agent.stop();
  const next = await startClusterController(t, { cluster, account, plane }, { resyncMs: 1_000 });
  await eventually("it says so", () =>
    assert.match(
      reasonOf(next),
      /^the cluster lowers the isolation of pods of .*, as an earlier leader saw\./,
    ),
  );
  await resyncTwice(next);
  assert.deepEqual(withoutEvents(next.api.writes), []);
  assert.deepEqual((await podsIn(namespace)).map(uidOf), [uidOf(other)]);
});

function readyAtMs({ status }: Pod): number {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return Date.parse(ready?.lastTransitionTime ?? "");
}

/** Waits until a whole resync has ended that began after this call. */
async function resyncTwice({ controller }: ClusterController): Promise<void> {
  for (const _ of [1, 2]) {
    const before = controller.status().resync?.lastStartedMs;
    await eventually("the next resync has ended", () =>
      assert.notEqual(controller.status().resync?.lastStartedMs, before),
    );
  }
}

/** As krane's service account, and without effect: "taken", or why not. */
async function evictionOf(namespace: string, name: string): Promise<string> {
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction?dryRun=All`;
  const answer = await cluster.request({ method: "POST", path, body, token: account.token });
  return answer.status === 201 ? "taken" : (answer.body as { readonly message: string }).message;
}

async function createPod(namespace: string, name: string, labels: Readonly<Record<string, string>>) {
  // The namespace of krane admits no others.
  const securityContext = {
    allowPrivilegeEscalation: false,
    runAsNonRoot: true,
    capabilities: { drop: ["ALL"] },
    seccompProfile: { type: "RuntimeDefault" },
  };
  const spec = { containers: [{ name: "main", image: "registry.example/main:1", securityContext }] };
  await api.create(pods, { metadata: { namespace, name, labels }, spec }, {}, signal);
}

test("krane may evict pods with its labels only, and delete none", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const managed = { "app.kubernetes.io/managed-by": "krane" };
  await createPod(namespace, "own", { ...managed, "app.kubernetes.io/component": "deployment" });
  await createPod(namespace, "sentinel", { ...managed, "app.kubernetes.io/component": "sentinel" });
  await createPod(namespace, "half", { "app.kubernetes.io/component": "deployment" });
  await createPod(namespace, "bare", {});
  await eventually("the policy sees the pods", async () => {
    for (const name of ["sentinel", "half", "bare"])
      assert.match(await evictionOf(namespace, name), /krane evicts only pods of deployments/, name);
    assert.equal(await evictionOf(namespace, "own"), "taken");
  });
  const path = `/api/v1/namespaces/${namespace}/pods/own?dryRun=All`;
  const deletion = await cluster.request({ method: "DELETE", path, token: account.token });
  assert.equal(deletion.status, 403);
});

test("krane may not evict pods of Kubernetes, of krane or of sentinels, whatever their labels", async (t) => {
  const labels = { "app.kubernetes.io/managed-by": "krane", "app.kubernetes.io/component": "deployment" };
  for (const namespace of ["kube-system", "krane", "sentinel", "default"]) {
    await createPod(namespace, "disguised", labels);
    t.after(() =>
      cluster.kubectl(["-n", namespace, "delete", "pod", "disguised", "--grace-period=0", "--force"]),
    );
    await eventually(`it is refused in ${namespace}`, async () =>
      assert.match(
        await evictionOf(namespace, "disguised"),
        /krane does not evict pods in its own namespace/,
      ),
    );
  }
});
