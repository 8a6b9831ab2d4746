// No workload without its ingress policy (K8), and one policy for all of an environment (K1).
import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds } from "../../src/kinds/kinds.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { ciliumNetworkPolicies, replicaSets } from "../../src/kube/resources.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { defaultOptions, region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const createDeploymentController = await kinds.deployment.loadController();

function order(agent: SimulatedAgent): readonly string[] {
  return agent.writes.filter(({ kind }) => kind !== "Namespace").map(({ kind }) => kind);
}

function admitted(policy: unknown): readonly string[] {
  return [...JSON.stringify(policy).matchAll(/"port":"(\d+)"/g)].map(([, port]) => port ?? "");
}

test("while the cluster has no network policies, workloads wait and say so; then they come by themselves", async () => {
  const world = await SimulatedRegion.create({ withoutCilium: true });
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.clock.advance(120_000);
  assert.deepEqual(await world.replicaSetNames(), []);
  const waiting = agent.controller.objects({ onlyTroubled: true }).find(({ key }) => key === "acme/web-1");
  assert.match(waiting?.reason ?? "", /the cluster has no CiliumNetworkPolicy/);
  await world.installCilium();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1, 200_000);
  assert.deepEqual(order(agent), ["CiliumNetworkPolicy", "ReplicaSet"]);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});

test("with best effort they go on without, and get the policy as soon as there can be one", async () => {
  const world = await SimulatedRegion.create({ withoutCilium: true });
  await world.setDeployment(1);
  await world.startAgent({ networkPolicy: "best-effort" });
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.installCilium();
  await world.until("its policy is there", async () => (await world.policies()).length === 1, 200_000);
  await world.stop();
});

test("a new port is let in before anything listens on it", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { port: 8001 });
  await world.setDeployment(2, { port: 8002 });
  const agent = await world.startAgent();
  await world.until("both are there", async () => (await world.replicaSets()).length === 2);
  await world.clock.advance(2_000);
  const before = agent.writes.length;
  await world.setDeployment(1, { port: 9001 });
  await world.until("it is changed", () => agent.controller.status().stream?.cursor === 3n);
  await world.clock.advance(2_000);
  const [widened, workload, narrowed, ...more] = agent.writes.slice(before);
  assert.deepEqual(admitted(widened?.manifest), ["8001", "8002", "9001"]);
  assert.equal(workload?.kind, "ReplicaSet");
  assert.deepEqual(admitted(narrowed?.manifest), ["8002", "9001"]);
  assert.deepEqual(more, []);
  await world.stop();
});

test("the port of a deployment that is deleted for its absence is closed at once", async () => {
  const world = await SimulatedRegion.create();
  for (const index of [1, 2, 3, 4]) await world.setDeployment(index, { port: 8000 + index });
  await world.startAgent();
  await world.until("all are there", async () => (await world.replicaSets()).length === 4);
  await world.clock.advance(301_000);
  await world.plane.admin.forgetDeployment(region, "d_4");
  await world.until("it is gone", async () => (await world.replicaSets()).length === 3, 400_000);
  await world.clock.advance(5_000);
  assert.deepEqual(admitted((await world.policies())[0]?.spec), ["8001", "8002", "8003"]);
  await world.stop();
});

test("two environments of one namespace have a policy each, and each goes with its last deployment", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { environmentId: "env_a" });
  await world.setDeployment(2, { environmentId: "env_a" });
  await world.setDeployment(3, { environmentId: "env_b" });
  await world.startAgent();
  await world.until("all are there", async () => (await world.replicaSets()).length === 3);
  assert.equal((await world.policies()).length, 2);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.until("it is gone", async () => (await world.replicaSets()).length === 2);
  await world.clock.advance(120_000);
  assert.equal((await world.policies()).length, 2);
  await world.plane.admin.deleteDeployment(region, "d_2");
  await world.until("the policy is gone too", async () => (await world.policies()).length === 1, 5_000);
  await world.stop();
});

test("a restart whose stream brings nothing yet neither narrows nor removes a policy", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { port: 8001 });
  await world.setDeployment(2, { port: 8002 });
  const first = await world.startAgent();
  await world.until("all are settled", () => first.controller.status().stream?.cursor === 2n);
  await first.stop();
  world.plane.faults.pauseStreams();
  const second = await world.startAgent({ resyncMs: 0 });
  await world.clock.advance(1_800_000);
  assert.deepEqual(second.writes, []);
  await world.stop();
});

/** Somebody applies a ReplicaSet with krane's marks and field manager, and without its seal. */
async function applyUnsealed(world: SimulatedRegion, name: string, containerPort: number): Promise<void> {
  const [{ metadata, spec } = assert.fail("no ReplicaSet")] = await world.replicaSets();
  const labels = { ...spec?.template?.metadata?.labels, [labelKeys.deploymentId]: `d_${name}` };
  const containers = [{ name: "deployment", image: "example/other:1", ports: [{ containerPort }] }];
  const template = { metadata: { labels }, spec: { containers } };
  const selector = { matchLabels: { [labelKeys.deploymentId]: `d_${name}` } };
  const manifest = {
    metadata: { namespace: "acme", name, labels: { ...metadata?.labels, ...labels } },
    spec: { replicas: 0, selector, template },
  };
  await world.api.apply(replicaSets, manifest, { fieldManager: "krane", force: true }, never);
}

test("a ReplicaSet that only has krane's marks opens no port, and keeps none open that desired state does not name", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { port: 8001 });
  const first = await world.startAgent();
  await world.until("it is there", async () => (await world.policies()).length === 1);
  await applyUnsealed(world, "open", 2222);
  await world.clock.advance(300_000);
  const ports = async () => admitted((await world.policies())[0]?.spec);
  assert.deepEqual(await ports(), ["8001"]);
  await first.stop();
  // As an earlier krane left it, which counted such a ReplicaSet.
  const [policy = assert.fail("no policy")] = await world.policies();
  const ref = { namespace: "acme", name: policy.metadata?.name ?? "" };
  const { ingress, ...rest } = policy.spec as {
    readonly ingress: readonly { readonly toPorts: object[] }[];
  };
  const toPorts = ["8001", "2222"].map((port) => ({ ports: [{ port, protocol: "TCP" }] }));
  const spec = { ...rest, ingress: ingress.map((rule) => ({ ...rule, toPorts })) };
  await world.api.apply(
    ciliumNetworkPolicies,
    { metadata: ref, spec },
    { fieldManager: "x", force: true },
    never,
  );
  world.plane.faults.pauseStreams();
  const second = await world.startAgent({ resyncMs: 0 });
  await world.clock.advance(300_000);
  assert.deepEqual((await ports()).toSorted(), ["2222", "8001"]);
  await second.stop();
  world.plane.faults.resumeStreams();
  await world.startAgent();
  await world.until("its port is closed", async () => (await ports()).join() === "8001", 300_000);
  await world.stop();
});

test("a policy that is removed or opened by hand is put right", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  const { ciliumNetworkPolicies } = await import("../../src/kube/resources.ts");
  const [policy] = await world.policies();
  const ref = { namespace: "acme", name: policy?.metadata?.name ?? "" };
  const never = new AbortController().signal;
  await world.api.apply(
    ciliumNetworkPolicies,
    { metadata: ref, spec: { ingress: [{ fromEntities: ["all"] }] } },
    { fieldManager: "someone", force: true },
    never,
  );
  await world.until("it is closed again", async () => {
    return !JSON.stringify((await world.policies())[0]?.spec).includes("fromEntities");
  });
  await world.api.delete(ciliumNetworkPolicies, ref, {}, never);
  await world.until("it is back", async () => (await world.policies()).length === 1);
  await world.stop();
});

test("a workload does not rely on a policy that has left its watch and cannot be looked up", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(2_000);
  const [policy] = await world.policies();
  const name = policy?.metadata?.name ?? "";
  const body = { kind: "Status", status: "Failure", reason: "Forbidden", code: 403 };
  const allow = world.server.faults.intercept(({ method, path }) =>
    method === "GET" && path.endsWith(`/ciliumnetworkpolicies/${name}`)
      ? { kind: "whole", status: 403, body }
      : undefined,
  );
  await world.api.delete(ciliumNetworkPolicies, { namespace: "acme", name }, {}, never);
  await world.setDeployment(2);
  await world.clock.advance(20_000);
  assert.equal((await world.replicaSets()).length, 1);
  allow();
  await world.until("the second is there", async () => (await world.replicaSets()).length === 2);
  const written = order(agent).filter((kind) => kind !== "Event");
  assert.deepEqual(written.slice(-2), ["CiliumNetworkPolicy", "ReplicaSet"]);
  await world.stop();
});

test("a workload returns after its policy if both vanish, and no watch shows that of the policy", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(2_000);
  const before = agent.writes.length;
  world.server.faults.dropEvents(1, (path) => path.endsWith("/ciliumnetworkpolicies"));
  const [policy] = await world.policies();
  const ref = { namespace: "acme", name: policy?.metadata?.name ?? "" };
  await world.api.delete(ciliumNetworkPolicies, ref, {}, never);
  await world.api.delete(replicaSets, { namespace: "acme", name: "web-1" }, {}, never);
  await world.until("it is back", async () => (await world.replicaSets()).length === 1);
  const written = agent.writes.slice(before).filter(({ kind }) => kind !== "Event");
  assert.deepEqual(
    written.map(({ kind }) => kind),
    ["CiliumNetworkPolicy", "ReplicaSet"],
  );
  await world.stop();
});

test("a new workload does not rely on a policy that was deleted while its watch lags", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(2_000);
  const before = agent.writes.length;
  world.server.faults.dropEvents(1, (path) => path.endsWith("/ciliumnetworkpolicies"));
  const [policy] = await world.policies();
  const ref = { namespace: "acme", name: policy?.metadata?.name ?? "" };
  await world.api.delete(ciliumNetworkPolicies, ref, {}, never);
  await world.setDeployment(2);
  await world.until("the second is there", async () => (await world.replicaSets()).length === 2);
  const written = agent.writes.slice(before).filter(({ kind }) => kind !== "Event");
  assert.deepEqual(
    written.map(({ kind }) => kind),
    ["CiliumNetworkPolicy", "ReplicaSet"],
  );
  await world.stop();
});

test("a workload does not rely on a policy that was deleted while its watch was broken", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(2_000);
  const isOfPolicies = (path: string) => path.endsWith("/ciliumnetworkpolicies");
  const body = { kind: "Status", status: "Failure", reason: "ServiceUnavailable", code: 503 };
  world.server.faults.intercept(({ path, query }) =>
    query?.["watch"] !== undefined && isOfPolicies(path) ? { kind: "whole", status: 503, body } : undefined,
  );
  world.server.faults.closeWatches(isOfPolicies);
  const [policy] = await world.policies();
  const ref = { namespace: "acme", name: policy?.metadata?.name ?? "" };
  await world.clock.advance(2_000);
  await world.api.delete(ciliumNetworkPolicies, ref, {}, never);
  await world.setDeployment(2);
  await world.until("the second is there", async () => (await world.replicaSets()).length === 2);
  const written = order(agent).filter((kind) => kind !== "Event");
  assert.deepEqual(written.slice(-2), ["CiliumNetworkPolicy", "ReplicaSet"]);
  await world.stop();
});

test("a port that is asked for while the policy is being narrowed is let in", async () => {
  const world = await SimulatedRegion.create();
  const ports = async () => String([...admitted((await world.policies())[0]?.spec ?? {})].sort());
  await world.setDeployment(1, { port: 8001 });
  await world.setDeployment(2, { port: 8002 });
  const options = { ...defaultOptions, resyncMs: 0, replayMs: 0 };
  let isHeld = false;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { controller } = world.createAgentOf("deployments", (deps) => {
    const { api } = deps;
    const apply: KubeApi["apply"] = async (kind, manifest, ...rest) => {
      const isNarrowing = kind.kind === "CiliumNetworkPolicy" && !JSON.stringify(manifest).includes('"8001"');
      if (isNarrowing && !isHeld) {
        isHeld = true;
        await released;
      }
      return api.apply(kind, manifest, ...rest);
    };
    return createDeploymentController(options, { ...deps, api: { ...api, apply } });
  });
  await world.resolved(controller.start());
  await world.until("both ports are open", async () => (await ports()) === "8001,8002");
  await world.setDeployment(1, { port: 8002 });
  await world.until("the policy is being narrowed", () => isHeld);
  await world.setDeployment(3, { port: 8001 });
  await world.until("the third is there", async () => (await world.replicaSets()).length === 3);
  release();
  await world.until("its port is open", async () => (await ports()) === "8001,8002", 5_000);
  await world.clock.advance(30_000);
  assert.equal(await ports(), "8001,8002");
  await world.stop();
});

test("a policy whose deletion no watch has shown is created again before the next workload", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { port: 8001 });
  await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(2_000);
  const [policy] = await world.policies();
  const { name = "", namespace = "" } = policy?.metadata ?? {};
  world.server.faults.dropEvents(1, (path) => path.includes("ciliumnetworkpolicies"));
  await world.api.delete(ciliumNetworkPolicies, { namespace, name }, {}, never);
  // The cache still shows the old policy. A write to it tells otherwise.
  await world.setDeployment(2, { port: 8002 });
  await world.until("the new one is there", async () => (await world.replicaSets()).length === 2, 20_000);
  assert.deepEqual((await world.policies()).map(admitted), [["8001", "8002"]]);
  await world.stop();
});
