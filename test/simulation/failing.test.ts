// What controllers tell about objects that are applied and yet do not run, or do not go.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunningController } from "../../src/engine/running-controller.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { appsDeployments, ciliumNetworkPolicies, pods, replicaSets } from "../../src/kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { applyPolicy } from "../support/policy-messages.ts";
import { applySentinel } from "../support/sentinel-messages.ts";
import { createSentinelAgent } from "./sentinel-agents.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createPolicyController = await kinds.policy.loadController();

const never = new AbortController().signal;

/** What the controller lists as troubled: from the key of each to why it fails. */
function failing({ controller }: { readonly controller: Pick<RunningController, "objects"> }) {
  const troubled = controller.objects({ onlyTroubled: true });
  return Object.fromEntries(troubled.map(({ key, failing }) => [key, failing]));
}

async function hold(
  world: SimulatedRegion,
  kind: ResourceKind,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  finalizers: string[],
): Promise<void> {
  const manifest: KubeObject = { metadata: { namespace, name, finalizers } };
  await world.api.apply(kind, manifest, { fieldManager: "somebody", force: true }, never);
}

test("pods that cannot run make their deployment troubled for as long as they cannot", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { replicas: 1 });
  const agent = await world.startAgent({ resyncMs: 0 });
  const ref = { namespace: "acme", name: "web-1" };
  await world.until("it is there", async () => Boolean(await world.api.get(replicaSets, ref, {}, never)));
  assert.deepEqual(failing(agent), {});
  const owner = (await world.api.get(replicaSets, ref, {}, never)) ?? assert.fail("it is gone");
  await world.replacePod(owner, undefined, "web-1-a", "10.0.0.1");
  const waiting = { reason: "ImagePullBackOff", message: "no such image" };
  const container = { name: "deployment", image: "", imageID: "", ready: false, restartCount: 0 };
  await world.api.apply(
    pods,
    {
      metadata: { namespace: "acme", name: "web-1-a" },
      status: {
        phase: "Pending",
        podIP: "10.0.0.1",
        containerStatuses: [{ ...container, state: { waiting } }],
      },
    },
    { fieldManager: "kubelet", force: true, subresource: "status" },
    never,
  );
  await world.until("it is seen", () => agent.controller.status().failing === 1);
  assert.deepEqual(failing(agent), { "acme/web-1": "1 of 1 pod: ImagePullBackOff: no such image" });
  await world.replacePod(owner, "web-1-a", "web-1-b", "10.0.0.2");
  await world.until("it is over", () => agent.controller.status().failing === 0);
  assert.deepEqual(failing(agent), {});
  await world.stop();
});

test("whatever finalizers keep from going is told with their names, in every controller", async () => {
  const world = await SimulatedRegion.create();
  const { admin } = world.plane;
  await world.setDeployment(1, { replicas: 0 });
  await admin.setSentinel(region, applySentinel({ k8sName: "lb", sentinelId: "s_lb", replicas: 0 }));
  await admin.setPolicy(region, applyPolicy({ k8sName: "to-web", ciliumNetworkPolicyId: "net_1" }));
  const agents = [
    world.createAgent(),
    createSentinelAgent(world),
    world.createAgentOf("cilium", (deps) => createPolicyController(defaultOptions, deps)),
  ];
  for (const { controller } of agents) await world.resolved(controller.start());
  const held = [
    { kind: replicaSets, ref: { namespace: "acme", name: "web-1" } },
    { kind: appsDeployments, ref: { namespace: "sentinel", name: "lb" } },
    { kind: ciliumNetworkPolicies, ref: { namespace: "acme", name: "to-web" } },
  ];
  for (const { kind, ref } of held) {
    await world.until(`${kind.kind} is there`, async () =>
      Boolean(await world.api.get(kind, ref, {}, never)),
    );
    await hold(world, kind, ref, ["example.com/hold"]);
  }
  assert.deepEqual(agents.map(failing), [{}, {}, {}]);

  await admin.deleteDeployment(region, "d_1");
  await admin.deleteSentinel(region, "s_lb");
  await admin.deletePolicy(region, "net_1");
  const text = (kind: string) => `${kind} is being deleted and waits for finalizer example.com/hold`;
  await world.until("all are seen", () =>
    agents.every(({ controller }) => controller.status().failing === 1),
  );
  assert.deepEqual(agents.map(failing), [
    { "acme/web-1": text("ReplicaSet") },
    { "sentinel/lb": text("Deployment") },
    { "acme/to-web": text("CiliumNetworkPolicy") },
  ]);
  for (const { kind, ref } of held) await hold(world, kind, ref, []);
  await world.until("all are gone", () =>
    agents.every(({ controller }) => controller.status().failing === 0),
  );
  await world.stop();
});
