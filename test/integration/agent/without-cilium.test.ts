// The whole agent on a cluster that does not know network policies: it starts, does what can be done without
// them, says what it waits for, and does the rest by itself once they can be made.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ciliumDefinition } from "../../../src/dev/cilium-definition.ts";
import { ObjectStatus_Outcome } from "../../../src/gen/krane/v1/agent_pb.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  customResourceDefinitions,
  podDisruptionBudgets,
  replicaSets,
  services,
} from "../../../src/kube/resources.ts";
import type { ResourceKind } from "../../../src/kube/types.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
import { agentClient, createAgentWorld, region } from "./agent-world.ts";

const never = new AbortController().signal;
const recovery = { deadlineMs: 120_000 };

/** A sentinel, a policy and a deployment are wanted of an agent whose cluster has no network policies. */
async function createBareWorld(t: TestContext, networkPolicy: "required" | "best-effort") {
  const world = await createAgentWorld(t);
  const { api } = world.cluster;
  await api.delete(customResourceDefinitions, { name: ciliumDefinition.metadata?.name ?? "" }, {}, never);
  await assert.rejects(api.list(ciliumNetworkPolicies, {}, never));
  await world.admin.setSentinel(region, applySentinel({ sentinelId: "se_1" }));
  await world.admin.setPolicy(region, applyPolicy());
  await world.admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
  const agent = await world.startAgent(`[isolation]\nnetwork_policy = "${networkPolicy}"`);
  const names = async (kind: ResourceKind, namespace?: string) =>
    (await api.list(kind, namespace === undefined ? {} : { namespace }, never)).items
      .map(({ metadata }) => metadata?.name)
      .sort();
  return {
    agent,
    client: agentClient(t, agent.url),
    deployments: () => names(replicaSets as ResourceKind, "acme"),
    policies: () => names(ciliumNetworkPolicies as ResourceKind),
    sentinelParts: async () => [
      await names(appsDeployments as ResourceKind),
      await names(services as ResourceKind),
      await names(podDisruptionBudgets as ResourceKind),
    ],
    install: () => api.create(customResourceDefinitions, ciliumDefinition, {}, never),
  };
}

type BareWorld = Awaited<ReturnType<typeof createBareWorld>>;

const sentinelParts = [["gate"], ["gate", "gate-gossip-lan"], ["gate"]];
const missingWatches =
  "cilium: cannot watch CiliumNetworkPolicy; deployments: cannot watch CiliumNetworkPolicy; routes: cannot watch CiliumNetworkPolicy; sentinels: cannot watch CiliumNetworkPolicy";

async function checkReady({ agent }: BareWorld): Promise<void> {
  const { status, body } = await fetchHttp1(`${agent.url}/health/ready`);
  assert.equal(status, 200);
  assert.equal(JSON.parse(body).checks.kubernetes, missingWatches);
}

async function checkWithoutPolicies(world: BareWorld): Promise<void> {
  await eventually("the sentinel has its other four objects", async () => {
    const parts = await world.sentinelParts();
    assert.deepEqual(parts, sentinelParts);
  });
  await eventually("the agent names what is missing", () => checkReady(world));
  await eventually("the policy waits, and says for what", async () => {
    const { objects } = await world.client.listObjects({ controller: "cilium", onlyTroubled: true });
    assert.match(objects[0]?.reason ?? "", /CiliumNetworkPolicy/);
    assert.equal(objects[0]?.outcome, ObjectStatus_Outcome.RETRYING);
  });
}

async function checkRecovery(world: BareWorld): Promise<void> {
  await world.install();
  const all = async () => {
    const policies = await world.policies();
    assert.equal(policies.length, 3, String(policies));
    assert.deepEqual(await world.deployments(), ["web"]);
    assert.deepEqual(await world.sentinelParts(), sentinelParts);
    const { status } = await world.client.getStatus({});
    assert.ok(status?.controllers.every(({ caches }) => caches.every(({ synced }) => synced)));
    assert.deepEqual((await world.client.listObjects({ onlyTroubled: true })).objects, []);
  };
  await eventually("all that is wanted is there, without a restart", all, recovery);
}

test("where policies are required, deployments wait for them", async (t) => {
  const world = await createBareWorld(t, "required");
  await checkWithoutPolicies(world);
  await eventually("the deployment is kept from running, and says why", async () => {
    const { objects } = await world.client.listObjects({ controller: "deployments", onlyTroubled: true });
    const web = objects.find(({ key }) => key === "acme/web");
    assert.match(web?.reason ?? "", /CiliumNetworkPolicy/);
  });
  assert.deepEqual(await world.deployments(), []);
  await checkRecovery(world);
});

test("where they are not, deployments run without them until they can have them", async (t) => {
  const world = await createBareWorld(t, "best-effort");
  await checkWithoutPolicies(world);
  await eventually("the deployment runs", async () => assert.deepEqual(await world.deployments(), ["web"]));
  await checkRecovery(world);
});
