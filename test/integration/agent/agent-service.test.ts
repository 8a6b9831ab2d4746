// AgentService as people and programs reach it: on the RPC port of a running agent.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import {
  ObjectStatus_Desired,
  ObjectStatus_Outcome,
  StreamStatus_State,
} from "../../../src/gen/krane/v1/agent_pb.ts";
import { replicaSets } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { hasCode } from "../../support/refusals.ts";
import { agentClient, agentRoads, createAgentWorld, region } from "./agent-world.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web" };

describe("AgentService on the RPC port", () => {
  test("shows by every road what the agent wants and what is there", async (t) => {
    const { admin, startAgent } = await createAgentWorld(t);
    const { url } = await startAgent();
    await admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
    await eventually("an instance runs", async () =>
      assert.equal((await admin.instances(region, "d_1"))[0]?.status, InstanceStatus.RUNNING),
    );
    for (const road of agentRoads) {
      const client = agentClient(t, url, { road });
      await eventually(`all is open, ${road}`, async () => {
        const { status } = await client.getStatus({});
        assert.equal(status?.region, region);
        const named = new Map(status.controllers.map((controller) => [controller.name, controller]));
        assert.deepEqual([...named.keys()], ["cilium", "deployments", "routes", "sentinels"]);
        assert.equal(named.get("deployments")?.stream?.cursor, 1n);
        for (const { stream, caches } of named.values()) {
          assert.equal(stream?.state, StreamStatus_State.OPEN);
          assert.ok(
            caches.every(({ synced }) => synced),
            "not yet",
          );
        }
      });
      const { objects } = await client.listObjects({ controller: "deployments" });
      const web = objects.find(({ key }) => key === "acme/web");
      assert.equal(web?.id, "d_1", road);
      assert.equal(web.desired, ObjectStatus_Desired.APPLY);
      assert.equal(
        web.outcome === ObjectStatus_Outcome.APPLIED || web.outcome === ObjectStatus_Outcome.UNCHANGED,
        true,
      );
      assert.deepEqual([web.desiredVersion, web.appliedVersion, web.ready, web.total], [1n, 1n, 1, 1]);
    }
  });

  test("rejects calls without the token, over every protocol", async (t) => {
    const { startAgent } = await createAgentWorld(t);
    const { url } = await startAgent();
    for (const road of agentRoads) {
      for (const bearer of ["", "wrong"])
        await assert.rejects(
          agentClient(t, url, { road, bearer }).getStatus({}),
          hasCode(Code.Unauthenticated),
          road,
        );
    }
  });

  test("lets a person release a deletion that the agent holds back", async (t) => {
    const { admin, cluster, startAgent } = await createAgentWorld(t);
    await admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
    const first = await startAgent();
    await eventually("it is there", async () =>
      assert.ok(await cluster.api.get(replicaSets, ref, {}, never), "not yet"),
    );
    await first.stop();
    await admin.forgetDeployment(region, "d_1");

    const { url } = await startAgent("[deletion]\nconfirmations = 1\n");
    const client = agentClient(t, url, { road: "gRPC, h2c" });
    const blocked = await eventually("its deletion is blocked", async () => {
      const { blockedDeletions } = await client.listBlockedDeletions({});
      return blockedDeletions[0] ?? assert.fail("nothing is blocked");
    });
    assert.deepEqual([blocked.controller, blocked.key, blocked.id], ["deployments", "acme/web", "d_1"]);
    assert.notEqual(blocked.reason, "");
    assert.ok(await cluster.api.get(replicaSets, ref, {}, never));

    const { controller, key } = blocked;
    await assert.rejects(client.releaseDeletion({ controller, key: "acme/other" }), hasCode(Code.NotFound));
    await client.releaseDeletion({ controller, key });
    await eventually("it is gone", async () =>
      assert.equal(await cluster.api.get(replicaSets, ref, {}, never), undefined),
    );
    assert.deepEqual((await client.listBlockedDeletions({})).blockedDeletions, []);
  });
});
