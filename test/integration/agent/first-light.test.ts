// The whole agent between a real connection to a control plane and a real one to a cluster.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectStatus_Outcome, StreamStatus_State } from "../../../src/gen/krane/v1/agent_pb.ts";
import { pods, replicaSets } from "../../../src/kube/kinds.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { createAgentWorld, region } from "./agent-world.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web" };

describe("an agent", () => {
  test("makes what the control plane asks for, and reports what runs", async (t) => {
    const { admin, cluster, startAgent } = await createAgentWorld(t);
    await startAgent();
    await admin.setDeployment(region, applyDeployment({ replicas: 2, deploymentId: "d_1" }));
    const reported = await eventually("two instances run", async () => {
      const instances = await admin.instances(region, "d_1");
      assert.deepEqual(
        instances.map(({ status }) => status),
        [InstanceStatus.RUNNING, InstanceStatus.RUNNING],
      );
      return instances.map(({ k8sName }) => k8sName);
    });
    const live = await cluster.api.list(pods, { namespace: "acme" }, never);
    assert.deepEqual(reported.sort(), live.items.map(({ metadata }) => metadata?.name).sort());

    await admin.scale(region, "d_1", 1);
    await eventually("it is scaled", async () => {
      const set = await cluster.api.get(replicaSets, ref, {}, never);
      assert.deepEqual([set?.spec?.replicas, set?.status?.readyReplicas], [1, 1]);
    });
    await admin.deleteDeployment(region, "d_1");
    await eventually("it is gone", async () =>
      assert.equal(await cluster.api.get(replicaSets, ref, {}, never), undefined),
    );
    await eventually("its end is reported", async () =>
      assert.equal((await admin.deploymentReport(region, "d_1"))?.exists, false),
    );
  });

  test("tells the control plane that it lives and how it is doing", async (t) => {
    const { admin, startAgent } = await createAgentWorld(t);
    await admin.setDeployment(region, applyDeployment({ image: "not an image", deploymentId: "d_1" }));
    await startAgent();
    await eventually("its trouble has arrived", async () => {
      const record = (await admin.agents()).find((agent) => agent.region === region);
      assert.ok(record?.heartbeatAtMs !== undefined);
      const { state, troubledObjects } = record.state?.report ?? {};
      assert.equal(state?.region, region);
      assert.equal(state.controllers[0]?.stream?.state, StreamStatus_State.OPEN);
      assert.equal(state.controllers[0]?.parked, 1);
      assert.equal(troubledObjects?.[0]?.outcome, ObjectStatus_Outcome.PARKED);
      assert.match(troubledObjects[0].fieldPath ?? "", /image/);
    });
  });

  test("goes on where the control plane knows neither heartbeats nor states", async (t) => {
    const { admin, faults, startAgent } = await createAgentWorld(t);
    faults.failNext("heartbeat", Code.Unimplemented, Number.POSITIVE_INFINITY);
    faults.failNext("reportAgentState", Code.Unimplemented, Number.POSITIVE_INFINITY);
    await startAgent();
    await admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
    await eventually("an instance runs", async () =>
      assert.equal((await admin.instances(region, "d_1"))[0]?.status, InstanceStatus.RUNNING),
    );
  });

  test("stays ready while others are away, and says who is", async (t) => {
    const { cluster, running, startAgent } = await createAgentWorld(t);
    const { url } = await startAgent();
    const ready = async () => {
      const { status, body } = await fetchHttp1(`${url}/health/ready`);
      return [status, JSON.parse(body)];
    };
    assert.deepEqual(await ready(), [
      200,
      { status: "ok", checks: { "control plane": "ok", kubernetes: "ok" } },
    ]);
    await running?.close(AbortSignal.abort());
    await eventually("the control plane is missed", async () => {
      const [status, { checks }] = await ready();
      assert.equal(status, 200);
      assert.match(checks["control plane"], /^deployments: stream is (down|being opened again) \([a-z_]+\)$/);
      assert.equal(checks.kubernetes, "ok");
    });
    await cluster.stop();
    await eventually("the cluster is missed", async () => {
      const [status, { checks }] = await ready();
      assert.equal(status, 200);
      assert.match(checks.kubernetes, /^deployments: apps\/ReplicaSet cannot be watched; /);
    });
  });
});
