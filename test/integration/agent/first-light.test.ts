// The whole agent between a real connection to a control plane and a real one to a cluster.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../../../src/gen/ctrl/v1/sentinel_pb.ts";
import { ObjectStatus_Outcome, StreamStatus_State } from "../../../src/gen/krane/v1/agent_pb.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  podDisruptionBudgets,
  pods,
  replicaSets,
  services,
} from "../../../src/kube/resources.ts";
import type { ResourceKind } from "../../../src/kube/types.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
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

  test("makes sentinels and policies beside them, each on a road of its own", async (t) => {
    const { admin, cluster, faults, startAgent } = await createAgentWorld(t);
    // The deployments' road is closed, which the others do not notice (K6).
    faults.failNext("watchDeployments", Code.Unavailable, Number.POSITIVE_INFINITY);
    await startAgent();
    await admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
    await admin.setSentinel(region, applySentinel({ sentinelId: "se_1" }));
    await admin.setPolicy(region, applyPolicy());
    await eventually("the sentinel is there with all its parts, and reported", async () => {
      const { api } = cluster;
      const gate = { namespace: "sentinel", name: "gate" };
      const gossip = { namespace: "sentinel", name: "gate-gossip-lan" };
      for (const kind of [appsDeployments, services, podDisruptionBudgets])
        assert.ok(await api.get(kind as ResourceKind, gate, {}, never), kind.kind);
      for (const kind of [services, ciliumNetworkPolicies])
        assert.ok(await api.get(kind as ResourceKind, gossip, {}, never), kind.kind);
      assert.equal((await admin.sentinelStatus(region, "se_1"))?.health, Health.UNHEALTHY);
    });
    const policy = { namespace: "acme", name: "sentinel-ingress-to-web" };
    await eventually("the policy is there", async () =>
      assert.ok(await cluster.api.get(ciliumNetworkPolicies, policy, {}, never), "not yet"),
    );
    assert.equal(await cluster.api.get(replicaSets, ref, {}, never), undefined);
    await admin.deleteSentinel(region, "se_1");
    await admin.deletePolicy(region, applyPolicy().ciliumNetworkPolicyId);
    await eventually("both are gone", async () => {
      assert.deepEqual((await cluster.api.list(ciliumNetworkPolicies, {}, never)).items, []);
      assert.deepEqual((await cluster.api.list(appsDeployments, {}, never)).items, []);
    });
  });

  test("tells the control plane that it lives and how it is doing", async (t) => {
    const { admin, startAgent } = await createAgentWorld(t);
    await admin.setDeployment(region, applyDeployment({ image: "not an image", deploymentId: "d_1" }));
    await startAgent();
    await eventually("its trouble has arrived", async () => {
      const record = (await admin.agents()).find((agent) => agent.region === region);
      assert.ok(record?.heartbeatAtMs !== undefined, "not yet");
      const { state, troubledObjects } = record.state?.report ?? {};
      assert.equal(state?.region, region);
      assert.deepEqual(
        state.controllers.map(({ name, stream, parked }) => [name, stream?.state, parked]),
        [
          ["cilium", StreamStatus_State.OPEN, 0],
          ["deployments", StreamStatus_State.OPEN, 1],
          ["routes", StreamStatus_State.OPEN, 0],
          ["sentinels", StreamStatus_State.OPEN, 0],
        ],
      );
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
    // The watches of routes and policies may open a moment after the start, which does not wait for them.
    const lease = await eventually("all is well", async () => {
      const [code, { lease: facts, ...body }] = await ready();
      assert.deepEqual(
        [code, body],
        [200, { status: "ok", checks: { "control plane": "ok", kubernetes: "ok" } }],
      );
      return facts;
    });
    assert.match(lease, /^leads since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    await running?.close(AbortSignal.abort());
    await eventually("the control plane is missed", async () => {
      const [status, { checks }] = await ready();
      assert.equal(status, 200);
      const missing = String(checks["control plane"]).split("; ");
      assert.equal(missing.length, 4);
      for (const [index, name] of ["cilium", "deployments", "routes", "sentinels"].entries())
        assert.match(
          missing[index] ?? "",
          new RegExp(`^${name}: stream is (down|being opened again) \\([a-z_]+\\)$`),
        );
      assert.equal(checks.kubernetes, "ok");
    });
    await cluster.stop();
    await eventually("the cluster is missed", async () => {
      const [status, { checks }] = await ready();
      assert.equal(status, 200);
      assert.deepEqual(checks.kubernetes.split("; "), [
        "cilium: cannot watch CiliumNetworkPolicy",
        "deployments: cannot watch ReplicaSet, Pod, CiliumNetworkPolicy",
        "routes: cannot watch Service, CiliumNetworkPolicy",
        "sentinels: cannot watch Deployment, Service, PodDisruptionBudget, CiliumNetworkPolicy",
      ]);
    });
  });
});
