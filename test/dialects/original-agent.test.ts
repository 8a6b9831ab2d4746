// The original's agent on krane's own server: what it is sent, what it is answered, and what people see of it.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { create, type DescMessage, toJson } from "@bufbuild/protobuf";
import { Code, createClient, type Interceptor } from "@connectrpc/connect";
import { verdictOn } from "../../src/cli/objects/wait-verdict.ts";
import { Secret } from "../../src/config/secret.ts";
import { ClusterService, ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import { ObjectKind, ObjectView_Phase as Phase } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { createAdminClient } from "../../src/server/admin-service/admin-client.ts";
import { explain } from "../../src/why/explain.ts";
import { deployment, policy, sentinel } from "../integration/server/served-control-plane.ts";
import { applyDeployment, utf8 } from "../support/deployment-messages.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { applyPolicy } from "../support/policy-messages.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { hasCode } from "../support/refusals.ts";
import { applySentinel } from "../support/sentinel-messages.ts";
import { createTestPlane } from "../support/store-admin.ts";
import { OriginalAgent, type StreamKind, streamKinds } from "./original-agent.ts";
import { fieldsOf } from "./original-fields.ts";

const region = "us-east-1.aws";
const token = "kct_of_the_test";

async function serve(t: TestContext) {
  const clock = new FakeClock();
  const deps = { clock, log: createQuietLog() };
  const { admin, store, createTransport } = createTestPlane({ tokens: [new Secret(token)] }, deps);
  await admin.registerRegion(region);
  const connect = (headers: Readonly<Record<string, string>> = { "x-krane-region": region }) => {
    const send: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${token}`);
      for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
      return next(request);
    };
    return createTransport([send]);
  };
  const stop = new AbortController();
  t.after(async () => {
    stop.abort();
    await clock.settle();
    assert.equal(clock.timerCount, 0, "timers that outlive the streams");
  });
  const agent = new OriginalAgent(region, connect());
  const watch = (kind: StreamKind) => {
    const one = new AbortController();
    void agent.watch(kind, AbortSignal.any([stop.signal, one.signal]));
    return () => one.abort();
  };
  const people = createAdminClient(store, "test", deps);
  const see = async (kind: ObjectKind, id: string) => {
    const { object, agent: heard } = await people.getObject({ ref: { region, kind, id } });
    assert.ok(object && heard);
    const why = explain({ asked: { kind, name: id }, object, agent: heard }, clock.wallMs());
    const phase = Object.entries(Phase).find(([, value]) => value === object.phase)?.[0];
    const goal = object.phase === Phase.DELETING || object.phase === Phase.DELETED ? "deleted" : "ready";
    const { kind: wait } = verdictOn(object, { goal }, object.version);
    return { object, phase, settled: object.settled, agent: heard, why, wait };
  };
  return { admin, store, clock, agent, watch, see, connect, people };
}

describe("an agent of the original", () => {
  test("becomes ready, scales and deletes without ever reporting its state", async (t) => {
    const { admin, clock, agent, watch, see } = await serve(t);
    await admin.setDeployment(region, deployment(1, { replicas: 2 }));
    await admin.setSentinel(region, sentinel(1));
    await admin.setPolicy(region, policy(1), "d_1");
    for (const kind of streamKinds) watch(kind);
    await clock.settle();
    assert.equal((await see(ObjectKind.DEPLOYMENT, "d_1")).phase, "WAITING");
    await clock.advance(15_000);
    const progressing = await see(ObjectKind.DEPLOYMENT, "d_1");
    assert.deepEqual([progressing.phase, progressing.wait], ["PROGRESSING", "waiting"]);
    assert.equal((await see(ObjectKind.POLICY, "p_1")).phase, "READY");

    await agent.reportPods("app-1", 2);
    await agent.reportSentinel("gate-1", 1);
    const ready = await see(ObjectKind.DEPLOYMENT, "d_1");
    assert.deepEqual([ready.phase, ready.wait], ["READY", "done"]);
    // CPU and memory of its pods are 0 in its reports.
    assert.deepEqual(ready.why.differences, []);
    assert.equal(ready.why.cause, "all-well");
    assert.match(ready.why.applied, /inferred/);
    assert.equal(ready.agent.state?.inferred, true);
    const gate = await see(ObjectKind.SENTINEL, "s_1");
    assert.equal(gate.phase, "READY");
    assert.deepEqual(gate.why.differences, []);

    await admin.deleteDeployment(region, "d_1");
    await admin.deleteSentinel(region, "s_1");
    await clock.settle();
    const deleting = await see(ObjectKind.SENTINEL, "s_1");
    assert.deepEqual([deleting.phase, deleting.wait], ["DELETING", "waiting"]);
    await clock.advance(15_000);
    const deleted = await see(ObjectKind.DEPLOYMENT, "d_1");
    assert.deepEqual([deleted.phase, deleted.wait], ["DELETED", "done"]);
    assert.equal((await see(ObjectKind.SENTINEL, "s_1")).phase, "DELETED");
    assert.equal((await see(ObjectKind.POLICY, "p_1")).phase, "DELETED");
    assert.deepEqual(agent.failures, []);
  });

  test("gets every field that was set, on the stream and when it asks", async (t) => {
    const { admin, agent, connect } = await serve(t);
    const set = {
      deployment: applyDeployment({
        buildId: "build_1",
        encryptedEnvironmentVariables: utf8('{"secrets":{"A":"b"}}'),
        command: ["./server", "--fast"],
        port: 3_000,
        shutdownSignal: "SIGINT",
        healthcheck: utf8('{"path":"/health"}'),
      }),
      sentinel: applySentinel(),
      policy: applyPolicy(),
    };
    await admin.setDeployment(region, set.deployment);
    await admin.setSentinel(region, set.sentinel);
    await admin.setPolicy(region, set.policy);
    const client = createClient(ClusterService, connect());
    const ending = new AbortController();
    const { signal } = ending;
    const streams = {
      deployment: client.watchDeployments({ region }, { signal }),
      sentinel: client.watchSentinels({ region }, { signal }),
      policy: client.watchCiliumNetworkPolicies({ region }, { signal }),
    };
    for (const kind of streamKinds) {
      const schema = kinds[kind].applySchema;
      const written = toJson(schema as DescMessage, set[kind], { useProtoFieldName: true });
      assert.deepEqual(Object.keys(written ?? {}), await fieldsOf(schema.name));
      for await (const { state } of streams[kind]) {
        assert.deepEqual(state.value, set[kind]);
        break;
      }
      const asked = await agent.ask(kind, kinds[kind].idOf(set[kind] as never));
      assert.deepEqual(asked.state.value, set[kind]);
    }
    ending.abort();
  });

  test("is believed in every field of its reports", async (t) => {
    const { admin, connect, see } = await serve(t);
    await admin.setDeployment(region, deployment(1, { replicas: 2 }));
    await admin.setSentinel(region, sentinel(1));
    const client = createClient(ClusterService, connect());
    const statuses = [Status.UNSPECIFIED, Status.PENDING, Status.RUNNING, Status.FAILED];
    const instances = statuses.map((status, index) => ({
      k8sName: `app-1-${index}`,
      address: `10-0-0-${index}.ws-one.pod.cluster.local:8080`,
      cpuMillicores: 100n + BigInt(index),
      memoryMib: 200n + BigInt(index),
      status,
    }));
    await client.reportDeploymentStatus({
      change: { case: "update", value: { k8sName: "app-1", instances } },
    });
    const { object } = await see(ObjectKind.DEPLOYMENT, "d_1");
    const seen = object.deployment?.instances.map((each) => {
      const { k8sName, address, cpuMillicores, memoryMib, status } = each;
      return { k8sName, address, cpuMillicores, memoryMib, status };
    });
    assert.deepEqual(seen, instances);
    const names = Object.keys(InstanceSchema.field).filter((name) => name in (seen?.[0] ?? {}));
    assert.deepEqual(
      names.map((name) => InstanceSchema.field[name as keyof typeof InstanceSchema.field]?.name),
      await fieldsOf("ReportDeploymentStatusRequest.Update.Instance"),
    );
    assert.deepEqual(await fieldsOf("ReportSentinelStatusRequest"), [
      "k8s_name",
      "available_replicas",
      "health",
    ]);
    for (const [health, availableReplicas] of [
      [Health.HEALTHY, 2],
      [Health.UNHEALTHY, 0],
      [Health.PAUSED, 0],
    ] as const) {
      await client.reportSentinelStatus({ k8sName: "gate-1", availableReplicas, health });
      const { sentinel: gate } = (await see(ObjectKind.SENTINEL, "s_1")).object;
      assert.deepEqual([gate?.health, gate?.availableReplicas], [health, availableReplicas]);
    }
    await client.reportDeploymentStatus({ change: { case: "delete", value: { k8sName: "app-1" } } });
    assert.deepEqual((await see(ObjectKind.DEPLOYMENT, "d_1")).object.deployment?.instances, []);
  });

  test("is settled at once up to the cursor that it comes back with", async (t) => {
    const { admin, clock, watch, see } = await serve(t);
    await admin.setPolicy(region, policy(1));
    const close = watch("policy");
    await clock.advance(5_000);
    assert.equal((await see(ObjectKind.POLICY, "p_1")).settled, false);
    close();
    await clock.settle();
    watch("policy");
    await clock.settle();
    assert.equal((await see(ObjectKind.POLICY, "p_1")).settled, true);
  });

  test("is in trouble with the object at which its stream ends each time", async (t) => {
    const { admin, clock, agent, watch, see } = await serve(t);
    await admin.setDeployment(region, deployment(1));
    await admin.setDeployment(region, deployment(2));
    agent.broken.add("app-2");
    for (let tries = 0; tries < 6; tries++) {
      watch("deployment");
      await clock.advance(3_000);
    }
    const stuck = await see(ObjectKind.DEPLOYMENT, "d_2");
    assert.equal(stuck.phase, "WAITING");
    assert.equal(stuck.why.cause, "retrying");
    assert.match(stuck.why.reason, /ended its stream \d+ times/);
    assert.equal((await see(ObjectKind.DEPLOYMENT, "d_1")).settled, true);

    agent.broken.clear();
    watch("deployment");
    await clock.advance(15_000);
    const mended = await see(ObjectKind.DEPLOYMENT, "d_2");
    assert.equal(mended.settled, true);
    assert.notEqual(mended.why.cause, "retrying");
  });

  test("has not applied what its cursor does not cover, however long it took to fail", async (t) => {
    const { admin, clock, agent, watch, see } = await serve(t);
    await admin.setPolicy(region, policy(1));
    await admin.setPolicy(region, policy(2));
    for (let tries = 0; tries < 4; tries++) {
      const close = watch("policy");
      await clock.settle();
      assert.equal((await see(ObjectKind.POLICY, "p_2")).settled, false, `before try ${tries}`);
      await clock.advance(20_000);
      close();
      await clock.settle();
      // It has applied the first one only.
      agent.cursors.policy = 1n;
    }
    watch("policy");
    await clock.settle();
    assert.equal((await see(ObjectKind.POLICY, "p_1")).settled, true);
    const stuck = await see(ObjectKind.POLICY, "p_2");
    assert.deepEqual([stuck.phase, stuck.why.cause], ["WAITING", "retrying"]);
    await clock.advance(120_000);
    assert.equal((await see(ObjectKind.POLICY, "p_2")).phase, "READY");
  });

  test("is shown as silent once its streams are closed", async (t) => {
    const { admin, clock, watch, see } = await serve(t);
    await admin.setPolicy(region, policy(1));
    const close = watch("policy");
    await clock.advance(20_000);
    assert.equal((await see(ObjectKind.POLICY, "p_1")).why.cause, "all-well");
    close();
    await clock.advance(60_000);
    assert.equal((await see(ObjectKind.POLICY, "p_1")).why.cause, "agent-silent");
  });

  test("does not replace what an agent of krane reports about itself", async (t) => {
    const { admin, store, clock, watch } = await serve(t);
    await admin.setPolicy(region, policy(1));
    const report = create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_1", version: "1.0" } });
    await store.reportAgent(region, { report, atMs: clock.wallMs() });
    watch("policy");
    await clock.advance(20_000);
    assert.equal((await admin.agents())[0]?.state?.report.state?.instanceId, "ins_1");
    await clock.advance(90_000);
    assert.equal((await admin.agents())[0]?.state?.report.state?.inferred, true);
  });

  test("gets everything on each stream while its cursor is above the counter", async (t) => {
    const { admin, clock, agent, watch } = await serve(t);
    agent.cursors.deployment = 9n;
    for (let number = 1; number <= 3; number++) await admin.setDeployment(region, deployment(number));
    const close = watch("deployment");
    await clock.settle();
    assert.deepEqual([...agent.cluster.deployment.keys()], ["app-1", "app-2", "app-3"]);
    close();
    // The counter has passed the cursor of the lost history when it comes back.
    for (let number = 4; number <= 9; number++) await admin.setDeployment(region, deployment(number));
    watch("deployment");
    await clock.settle();
    assert.equal(agent.cluster.deployment.size, 9);
    assert.deepEqual(agent.failures, []);
  });

  test("deletes nothing that the control plane does not know, only what it is told to delete", async (t) => {
    const { admin, clock, agent, watch } = await serve(t);
    await admin.setDeployment(region, deployment(1));
    await admin.setDeployment(region, deployment(2));
    await admin.setSentinel(region, sentinel(1));
    await admin.setPolicy(region, policy(1));
    for (const kind of streamKinds) watch(kind);
    await clock.settle();
    await admin.forgetDeployment(region, "d_1");
    await admin.forgetSentinel(region, "s_1");
    await admin.forgetPolicy(region, "p_1");
    await admin.deleteDeployment(region, "d_2");
    await agent.resync();
    assert.deepEqual([...agent.cluster.deployment.keys()], ["app-1"]);
    assert.deepEqual([...agent.cluster.sentinel.keys()], ["gate-1"]);
    assert.deepEqual([...agent.cluster.policy.keys()], ["rule-1"]);
    assert.deepEqual(new Set(agent.failures), new Set(["failed_precondition"]));
    for (const kind of streamKinds)
      await assert.rejects(agent.ask(kind, ""), hasCode(Code.InvalidArgument), kind);
  });

  test("may report on what the control plane has forgotten", async (t) => {
    const { agent } = await serve(t);
    await agent.reportSentinel("gate-9", 1);
    await agent.reportPods("app-9", 1);
  });
});

describe("an agent of a later version of the original", () => {
  test("does not look alive, because it cannot receive an order", async (t) => {
    const { connect, admin } = await serve(t);
    const beat = (headers: Readonly<Record<string, string>>) =>
      createClient(ClusterService, connect(headers)).heartbeat({
        region: { name: "us-east-1", platform: "aws" },
      });
    await assert.rejects(beat({}), hasCode(Code.Unimplemented, /other protocol versions/));
    const platform = { "x-krane-region": region, "x-krane-platform": "aws" };
    await assert.rejects(beat(platform), hasCode(Code.Unimplemented, /other protocol versions/));
    assert.equal((await admin.agents())[0]?.heartbeatAtMs, undefined);
    await beat({ "x-krane-region": region });
    assert.notEqual((await admin.agents())[0]?.heartbeatAtMs, undefined);
  });
});
