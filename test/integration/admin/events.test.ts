// History through the admin API, as a list and as a stream, and the way of a release to
// the agent.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Event, ObjectKind } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../../src/gen/krane/v1/agent_pb.ts";
import { startAdminServer } from "../../support/admin-server.ts";
import { applyDeployment, environmentOf } from "../../support/deployment-messages.ts";

const region = "local.dev";
const environmentSet = "1 ann set env_1a2B3c4D v1";

async function serve(t: TestContext) {
  const server = await startAdminServer();
  t.after(() => server.stop());
  const admins = server.client();
  // The first entry.
  await admins.applyEnvironment({ region, ...environmentOf() });
  const scale = (replicas: number, id = "d_1a2B3c4D", k8sName = "web") =>
    admins.applyObject({
      region,
      spec: {
        spec: { case: "deployment", value: applyDeployment({ replicas, deploymentId: id, k8sName }) },
      },
    });
  /** The next so many events of a stream, which is left then. Whatever else is done is done after the first. */
  const watch = async (request: object, count: number, afterFirst?: () => Promise<unknown>) => {
    const left = new AbortController();
    const seen: string[] = [];
    for await (const { event } of admins.watchEvents({ region, ...request }, { signal: left.signal })) {
      if (event === undefined) continue;
      seen.push(text(event));
      if (seen.length === 1) await afterFirst?.();
      if (seen.length === count) break;
    }
    left.abort();
    return seen;
  };
  return { ...server, admins, scale, watch };
}

const text = (event: Event | undefined) =>
  `${event?.entry} ${event?.by} ${event?.event} ${event?.ref?.id} v${event?.version} ${event?.outcome}`.trim();

test("events are listed the newest first, of one object or of all", async (t) => {
  const { admins, scale } = await serve(t);
  await scale(1);
  await scale(1, "d_2", "api");
  await scale(2);
  const list = async (request: object) => (await admins.listEvents({ region, ...request })).events.map(text);
  assert.deepEqual(await list({}), [
    "4 ann set d_1a2B3c4D v3",
    "3 ann set d_2 v2",
    "2 ann set d_1a2B3c4D v1",
    environmentSet,
  ]);
  assert.deepEqual(await list({ limit: 1 }), ["4 ann set d_1a2B3c4D v3"]);
  assert.deepEqual(await list({ kind: ObjectKind.DEPLOYMENT, id: "d_2" }), ["3 ann set d_2 v2"]);
  assert.deepEqual(await list({ kind: ObjectKind.POLICY }), []);
});

test("a watch begins with a backlog and continues with new events, in order", async (t) => {
  const { scale, watch, agentClient } = await serve(t);
  for (const replicas of [1, 2, 3]) await scale(replicas);
  const seen = await watch({ backlog: 2 }, 4, async () => {
    await scale(4);
    await agentClient().reportDeploymentStatus({
      change: { case: "update", value: { k8sName: "web", instances: [] } },
    });
  });
  assert.deepEqual(seen, [
    "3 ann set d_1a2B3c4D v2",
    "4 ann set d_1a2B3c4D v3",
    "5 ann set d_1a2B3c4D v4",
    "6 agent reported d_1a2B3c4D v4 no instances",
  ]);
});

test("a watch that comes back with its last entry misses nothing, and one of an object sees no other", async (t) => {
  const { scale, watch } = await serve(t);
  for (const replicas of [1, 2, 3]) await scale(replicas);
  await scale(1, "d_2", "api");
  assert.deepEqual(await watch({ after: 2n }, 3), [
    "3 ann set d_1a2B3c4D v2",
    "4 ann set d_1a2B3c4D v3",
    "5 ann set d_2 v4",
  ]);
  assert.deepEqual(await watch({ after: 0n, kind: ObjectKind.DEPLOYMENT, id: "d_2" }, 1), [
    "5 ann set d_2 v4",
  ]);
});

test("one token gets its part of the places for watches, and leaves the rest to others", async (t) => {
  const { client, tokens } = await serve(t);
  const left = new AbortController();
  t.after(() => left.abort());
  /** Open as soon as the first answer is there, and then for as long as the test. */
  const open = async (token: string) => {
    const stream = client(token).watchEvents({ region }, { signal: left.signal });
    await stream[Symbol.asyncIterator]().next();
  };
  for (let opened = 0; opened < 25; opened++) await open(tokens.readWrite);
  const exhausted = (error: unknown) =>
    error instanceof ConnectError && error.code === Code.ResourceExhausted;
  await assert.rejects(open(tokens.readWrite), exhausted);
  await open(tokens.readOnly);
});

test("a stop of the server ends a watch at once, as one that may come back", async (t) => {
  const { scale, watch, stop } = await serve(t);
  await scale(1);
  let stopped: Promise<void> | undefined;
  const ended = watch({ backlog: 1 }, 2, async () => {
    stopped = stop();
  });
  await assert.rejects(ended, (error) => error instanceof ConnectError && error.code === Code.Unavailable);
  await stopped;
});

test("a release goes to the agent with the answer to its report, until the report no longer lists it", async (t) => {
  const { admins, agentClient } = await serve(t);
  const agents = agentClient();
  const key = { controller: "deployments", key: "acme/web" };
  const held = { ...key, id: "d_1a2B3c4D", reason: "not confirmed" };
  const report = async (...blockedDeletions: readonly (typeof held)[]) => {
    const state = { instanceId: "ins_1" };
    const answer = await agents.reportAgentState({ state, blockedDeletions: [...blockedDeletions] });
    return answer.releasedDeletions.map(({ controller, key: name }) => `${controller} ${name}`);
  };
  const release = () => admins.releaseDeletion({ region, ...key });
  await assert.rejects(release(), (error) => error instanceof ConnectError && error.code === Code.NotFound);
  assert.deepEqual(await report(held), []);
  await release();
  assert.deepEqual(await report(held), ["deployments acme/web"]);
  assert.deepEqual(await report(held), ["deployments acme/web"]);
  assert.deepEqual(await report(), []);
  assert.deepEqual(await report(held), []);
  const { events } = await admins.listEvents({ region });
  assert.deepEqual(events.map(text), ["2 ann released d_1a2B3c4D v0", environmentSet]);
});

test("an adoption goes to the agent with the answer to its report, until the report no longer lists it", async (t) => {
  const { admins, agentClient } = await serve(t);
  const agents = agentClient();
  const place = { kind: "apps/ReplicaSet", namespace: "acme", name: "web", uid: "u1" };
  const object = { controller: "deployments", ...place };
  const report = async (strangers: readonly object[]) => {
    const answer = await agents.reportAgentState({
      state: { instanceId: "ins_1" },
      strangers: [...strangers],
    });
    return answer.adoptions.map(({ name, uid }) => `${name} ${uid}`);
  };
  const hasCode = (code: Code) => (error: unknown) => error instanceof ConnectError && error.code === code;
  const adopt = (objects: (typeof object)[]) => admins.adoptObjects({ region, objects });
  await assert.rejects(adopt([object]), hasCode(Code.NotFound));
  await assert.rejects(adopt([]), hasCode(Code.InvalidArgument));
  await assert.rejects(adopt([{ ...object, uid: "" }]), hasCode(Code.InvalidArgument));
  const listed = { ...object, reason: "of another key", adoptable: true };
  const unwanted = { ...object, name: "old", adoptable: false, obstacle: "not in desired state" };
  assert.deepEqual(await report([unwanted, listed]), []);
  const { strangers, stateAtMs, nowMs } = await admins.listStrangers({ region });
  assert.deepEqual(
    strangers.map(({ name, obstacle }) => [name, obstacle]),
    [
      ["web", ""],
      ["old", "not in desired state"],
    ],
  );
  assert.ok(stateAtMs > 0n && stateAtMs <= nowMs);
  const { notListed } = await adopt([object, { ...object, name: "old" }, { ...object, uid: "u2" }]);
  assert.deepEqual(
    notListed.map(({ name, uid }) => `${name} ${uid}`),
    ["old u1", "web u2"],
  );
  assert.deepEqual(await report([listed]), ["web u1"]);
  assert.deepEqual(await report([listed]), ["web u1"]);
  assert.deepEqual(await report([{ ...listed, uid: "u2" }]), []);
  assert.deepEqual(await report([listed]), []);
});

test("trouble and its end stand in history, once each", async (t) => {
  const { admins, agentClient } = await serve(t);
  const agents = agentClient();
  const status = {
    controller: "deployments",
    key: "acme/web",
    id: "d_1a2B3c4D",
    desiredVersion: 3n,
    outcome: Outcome.CONFLICT,
    reason: "the name belongs to something else",
  };
  const report = (troubledObjects: (typeof status)[]) =>
    agents.reportAgentState({ state: { instanceId: "ins_1" }, troubledObjects });
  await report([status]);
  await report([status]);
  await report([]);
  const { events } = await admins.listEvents({ region });
  assert.deepEqual(events.map(text), [
    "3 agent recovered d_1a2B3c4D v3",
    "2 agent troubled d_1a2B3c4D v3 conflict: the name belongs to something else",
    environmentSet,
  ]);
});
