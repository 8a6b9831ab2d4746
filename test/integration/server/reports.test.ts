// What agents tell, as the control plane keeps it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ReportAgentStateRequestSchema } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../../../src/gen/ctrl/v1/sentinel_pb.ts";
import { ObjectStatus_Outcome } from "../../../src/gen/krane/v1/agent_pb.ts";
import { hasCode } from "../../support/refusals.ts";
import {
  aws,
  type ClusterClient,
  deployment,
  dev,
  sentinel,
  serveControlPlane,
} from "./served-control-plane.ts";

const instance = (k8sName: string, address: string, status: Status = Status.RUNNING) =>
  create(ReportDeploymentStatusRequest_Update_InstanceSchema, {
    k8sName,
    address,
    cpuMillicores: 250n,
    memoryMib: 256n,
    status,
  });

const reportUpdate = (client: ClusterClient, k8sName: string, instances: ReturnType<typeof instance>[]) =>
  client.reportDeploymentStatus({ change: { case: "update", value: { k8sName, instances } } });

const reportDelete = (client: ClusterClient, k8sName: string) =>
  client.reportDeploymentStatus({ change: { case: "delete", value: { k8sName } } });

async function serve(t: Parameters<typeof serveControlPlane>[0]) {
  const server = await serveControlPlane(t, "h2c");
  await server.admin.setDeployment(aws, deployment(1));
  await server.admin.setDeployment(aws, deployment(2));
  await server.admin.setSentinel(aws, sentinel(1));
  return { ...server, client: server.connect() };
}

describe("reports", () => {
  test("a report replaces the instances of its deployment, and of no other", async (t) => {
    const { admin, client } = await serve(t);
    const [a, b, c] = [instance("a", "10-0-0-1:8080"), instance("b", "10-0-0-2:8080"), instance("c", "")];
    await reportUpdate(client, "app-2", [c]);
    await reportUpdate(client, "app-1", [a, b]);
    assert.deepEqual(await admin.instances(aws, "d_1"), [a, b]);
    const crashed = instance("b", "10-0-0-2:8080", Status.FAILED);
    await reportUpdate(client, "app-1", [crashed]);
    assert.deepEqual(await admin.instances(aws, "d_1"), [crashed]);
    assert.deepEqual(await admin.instances(aws, "d_2"), [c]);
  });

  test("a report that arrives after a newer one of its agent, or of a later leader, is dropped", async (t) => {
    const { admin, client } = await serve(t);
    const report = (pod: string, order: string) =>
      client.reportDeploymentStatus(
        { change: { case: "update", value: { k8sName: "app-1", instances: [instance(pod, "")] } } },
        { headers: { "x-krane-report-order": order } },
      );
    const shown = async () => (await admin.instances(aws, "d_1")).map(({ k8sName }) => k8sName);
    await report("newer", "0/one/2");
    await report("overtaken", "0/one/1");
    assert.deepEqual(await shown(), ["newer"]);
    await report("later leader", "5/two/1");
    await report("late", "0/one/3");
    assert.deepEqual(await shown(), ["later leader"]);
    await reportUpdate(client, "app-1", [instance("an agent without numbers", "")]);
    assert.deepEqual(await shown(), ["an agent without numbers"]);
  });

  test("several reports in one call count one by one, each with its own number", async (t) => {
    const { admin, client } = await serve(t);
    const call = (order: string, ...reports: (readonly [name: string, pod: string, number: bigint])[]) =>
      client.reportDeploymentStatuses(
        {
          entries: reports.map(([k8sName, pod, number]) => ({
            report: { change: { case: "update", value: { k8sName, instances: [instance(pod, "")] } } },
            number,
          })),
        },
        { headers: { "x-krane-report-order": order } },
      );
    const shown = async (id: string) => (await admin.instances(aws, id)).map(({ k8sName }) => k8sName);
    const first = await call("0/one/2", ["app-1", "newer", 2n], ["app-9", "lost", 3n], ["app-2", "two", 4n]);
    assert.deepEqual(first.notFound, [1]);
    const second = await call("0/one/1", ["app-1", "overtaken", 1n], ["app-2", "newest", 5n]);
    assert.deepEqual(second.notFound, []);
    assert.deepEqual([await shown("d_1"), await shown("d_2")], [["newer"], ["newest"]]);
    const tooMany = Array.from({ length: 1_001 }, () => ["app-1", "pod", 9n] as const);
    await assert.rejects(call("0/one/9", ...tooMany), hasCode(Code.InvalidArgument));
    assert.deepEqual((await client.reportDeploymentStatuses({})).notFound, []);
  });

  test("a report of a deletion takes all instances, also after the deployment was stopped", async (t) => {
    const { admin, client } = await serve(t);
    await reportUpdate(client, "app-1", [instance("a", "10-0-0-1:8080")]);
    await admin.deleteDeployment(aws, "d_1");
    assert.equal((await admin.deploymentReport(aws, "d_1"))?.exists, true);
    await reportDelete(client, "app-1");
    const report = await admin.deploymentReport(aws, "d_1");
    assert.deepEqual([report?.exists, report?.instances], [false, []]);
  });

  test("a report without a change is answered and changes nothing", async (t) => {
    const { admin, client } = await serve(t);
    await client.reportDeploymentStatus({});
    assert.equal(await admin.deploymentReport(aws, "d_1"), undefined);
  });

  test("a name that the region does not have is not found, for updates and deletions alike", async (t) => {
    const { admin, client, connect } = await serve(t);
    await assert.rejects(reportUpdate(client, "app-9", []), hasCode(Code.NotFound));
    await assert.rejects(reportDelete(client, "app-9"), hasCode(Code.NotFound));
    await assert.rejects(client.reportSentinelStatus({ k8sName: "gate-9" }), hasCode(Code.NotFound));
    const elsewhere = connect({ "x-krane-region": dev });
    await assert.rejects(reportUpdate(elsewhere, "app-1", []), hasCode(Code.NotFound));
    await admin.forgetDeployment(aws, "d_1");
    await assert.rejects(reportUpdate(client, "app-1", []), hasCode(Code.NotFound));
  });

  test("an address that was given to another pod leaves the pod that had it", async (t) => {
    const { admin, client } = await serve(t);
    const old = instance("old", "10-0-0-1:8080");
    const kept = instance("kept", "10-0-0-2:8080");
    await reportUpdate(client, "app-1", [old, kept]);
    const reused = instance("new", "10-0-0-1:8080");
    await reportUpdate(client, "app-2", [reused]);
    assert.deepEqual(await admin.instances(aws, "d_1"), [kept]);
    assert.deepEqual(await admin.instances(aws, "d_2"), [reused]);
    await reportDelete(client, "app-1");
    assert.deepEqual(await admin.instances(aws, "d_2"), [reused]);
  });

  test("a sentinel's status is kept as reported, and only under its own id", async (t) => {
    const { admin, client } = await serve(t);
    const status = { availableReplicas: 2, health: Health.HEALTHY, runningImage: "registry.example/gate:1" };
    await client.reportSentinelStatus({ k8sName: "gate-1", ...status });
    await client.reportSentinelStatus({ k8sName: "gate-1", sentinelId: "s_1", ...status });
    const { atMs: _, ...kept } = (await admin.sentinelStatus(aws, "s_1")) ?? {};
    assert.deepEqual(kept, status);
    const other = client.reportSentinelStatus({ k8sName: "gate-1", sentinelId: "s_2", ...status });
    await assert.rejects(other, hasCode(Code.NotFound));
  });

  test("heartbeat and state of an agent are kept per region", async (t) => {
    const { admin, client, connect } = await serve(t);
    await client.heartbeat({ region: { name: "us-east-1", platform: "aws" } });
    const state: MessageInitShape<typeof ReportAgentStateRequestSchema> = {
      state: {
        instanceId: "ins_1",
        controllers: [{ name: "deployments", stream: { cursor: 2n ** 60n + 1n }, parked: 1 }],
      },
      troubledObjects: [
        {
          controller: "deployments",
          key: "ws-one/app-1",
          outcome: ObjectStatus_Outcome.PARKED,
          reason: "port",
        },
      ],
      blockedDeletions: [{ controller: "deployments", key: "ws-one/app-2", suspectedPasses: 3 }],
    };
    await connect({ "x-krane-region": dev }).reportAgentState(state);
    const [east, local] = await admin.agents();
    assert.equal(east?.region, aws);
    assert.ok((east?.heartbeatAtMs ?? 0) > 0);
    assert.equal(east?.state, undefined);
    assert.equal(local?.region, dev);
    assert.equal(local?.heartbeatAtMs, undefined);
    const report = local?.state?.report;
    assert.equal(report?.state?.controllers[0]?.stream?.cursor, 2n ** 60n + 1n);
    assert.equal(report?.troubledObjects[0]?.reason, "port");
    assert.equal(report?.blockedDeletions[0]?.suspectedPasses, 3);
    await assert.rejects(client.reportAgentState({}), hasCode(Code.InvalidArgument));
  });

  test("a refused call fails as often as planned and leaves nothing behind", async (t) => {
    const { admin, client, faults } = await serve(t);
    faults.failNext("reportDeploymentStatus", Code.Unavailable, 2, { "retry-after": "7" });
    const refused = (error: unknown) =>
      hasCode(Code.Unavailable)(error) && ConnectError.from(error).metadata.get("retry-after") === "7";
    await assert.rejects(reportUpdate(client, "app-1", []), refused);
    await assert.rejects(reportUpdate(client, "app-1", []), refused);
    assert.equal(await admin.deploymentReport(aws, "d_1"), undefined);
    await reportUpdate(client, "app-1", []);
    assert.equal((await admin.deploymentReport(aws, "d_1"))?.exists, true);

    faults.failNext("getDesiredDeploymentState", Code.NotFound, Number.POSITIVE_INFINITY);
    const ask = () => client.getDesiredDeploymentState({ deploymentId: "d_1" });
    await assert.rejects(ask(), hasCode(Code.NotFound));
    await assert.rejects(ask(), hasCode(Code.NotFound));
    faults.heal();
    assert.equal((await ask()).version, 1n);
  });

  test("a call that hangs holds up no other, and ends with its client", async (t) => {
    const { admin, client, faults } = await serve(t);
    faults.hangNext("reportDeploymentStatus");
    const deadline = new AbortController();
    const hanging = client.reportDeploymentStatus(
      { change: { case: "update", value: { k8sName: "app-1" } } },
      { signal: deadline.signal },
    );
    await reportUpdate(client, "app-2", []);
    deadline.abort();
    await assert.rejects(hanging, hasCode(Code.Canceled));
    assert.equal(await admin.deploymentReport(aws, "d_1"), undefined);
  });

  test("a report that lists more than people read is kept in part, and harmless", async (t) => {
    const { admin, client } = await serve(t);
    const troubledObjects = Array.from({ length: 1_000 }, (_, index) => ({
      controller: "deployments",
      id: `d_${index}`,
      desiredVersion: 2n ** 64n - 1n,
      reason: `\0${"x".repeat(2_000)}`,
    }));
    await client.reportAgentState({ state: { instanceId: "ins_1" }, troubledObjects });
    const agents = await admin.agents();
    const kept = agents.find(({ region }) => region === aws)?.state?.report.troubledObjects ?? [];
    assert.equal(kept.length, 200);
    assert.deepEqual([kept[0]?.reason.length, kept[0]?.reason.includes("\0")], [1_000, false]);
  });
});
