// A second agent of a region that should not be there, because it follows another control plane.
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentStandbys } from "../../../src/server/standbys.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { token } from "../server/served-control-plane.ts";
import { agentClient, createAgentWorld } from "./agent-world.ts";

test("an agent warns if the leader of its region follows another control plane", async (t) => {
  const { links, startAgent } = await createAgentWorld(t);
  const first = await startAgent("", { top: 'instance_id = "first"' });
  const control = `url = "http://localhost:${links.controlPlane.port}"\ntoken = "${token}"`;
  const second = await startAgent("", { top: 'instance_id = "second"', control });
  const { status } = await agentClient(t, second.url).getStatus({});
  assert.deepEqual(status?.warnings, [
    `first leads this region for another control plane, http://127.0.0.1:${links.controlPlane.port}: one of the two agents should not be here`,
  ]);
  const ready = JSON.parse((await fetchHttp1(`${second.url}/health/ready`)).body);
  assert.equal(ready.lease, "standby; first leads, for another control plane");
  assert.deepEqual((await agentClient(t, first.url).getStatus({})).status?.warnings, []);
  await first.stop();
  await eventually("the second one leads, and has nothing to warn of", async () => {
    const { status: later } = await agentClient(t, second.url).getStatus({});
    assert.deepEqual([later?.lease?.leader, later?.warnings], ["second", []]);
  });
});

test("the control plane knows an agent as a standby until it leads", async (t) => {
  const { startAgent, admin } = await createAgentWorld(t);
  const standbys = async () =>
    (await admin.agents()).flatMap((agent) => currentStandbys(agent).map(({ instanceId }) => instanceId));
  const first = await startAgent("", { top: 'instance_id = "first"' });
  await startAgent("", { top: 'instance_id = "second"' });
  await eventually("the second one stands by", async () => assert.deepEqual(await standbys(), ["second"]));
  await first.stop();
  await eventually("it leads", async () => assert.deepEqual(await standbys(), []));
});
