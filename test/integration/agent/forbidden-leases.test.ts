// Agents that Kubernetes forbids to use Leases, such as those that run with the roles of a version without them.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { replicaSets } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { agentClient, createAgentWorld, region } from "./agent-world.ts";

const never = new AbortController().signal;

async function createWorld(t: TestContext) {
  const { cluster, admin, startAgent } = await createAgentWorld(t);
  cluster.server.faults.intercept(({ path }) =>
    path.includes("/leases")
      ? { kind: "whole", status: 403, body: { kind: "Status", code: 403 } }
      : undefined,
  );
  await admin.setDeployment(region, applyDeployment({ k8sName: "web", deploymentId: "d_web" }));
  return {
    startAgent: async (lease: string) => {
      const { url } = await startAgent("", { top: `lease = "${lease}"` });
      const client = agentClient(t, url);
      return {
        warnings: async () => (await client.getStatus({})).status?.warnings ?? [],
        lease: async () => JSON.parse((await fetchHttp1(`${url}/health/ready`)).body).lease,
        client,
      };
    },
    live: async () => {
      const { items } = await cluster.api.list(replicaSets, { namespace: "acme" }, never);
      return items.map(({ metadata }) => metadata?.name);
    },
  };
}

test("with lease = auto an agent works without one, and says so", async (t) => {
  const { startAgent, live } = await createWorld(t);
  const agent = await startAgent("auto");
  await eventually("it has applied what is wanted", async () => assert.deepEqual(await live(), ["web"]));
  assert.deepEqual(await agent.warnings(), [
    "nothing keeps a second agent of this region from writing: Kubernetes forbids this one to use Leases",
  ]);
  assert.equal(await agent.lease(), "no right to use Leases; writes without one");
});

test("with lease = required an agent writes nothing, and says why", async (t) => {
  const { startAgent, live } = await createWorld(t);
  const agent = await startAgent("required");
  await eventually("it knows what is wanted", async () => {
    const { objects } = await agent.client.listObjects({ controller: "deployments" });
    assert.deepEqual(
      objects.map(({ id }) => id),
      ["d_web"],
    );
  });
  const [warning = "", ...others] = await agent.warnings();
  assert.match(warning, /^no lease, no writes: .*403/);
  assert.deepEqual([others, await live()], [[], []]);
});
