// An agent that is silent for longer than its reporting interval: commands say when it was last heard, and show nothing
// that it reported as the present (K14).
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { createSystemClock } from "../../concurrency/clock.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../gen/ctrl/v1/deployment_pb.ts";
import { BreakerStatus_State as Breaker, StreamStatus_State as Stream } from "../../gen/krane/v1/agent_pb.ts";
import { main } from "../main.ts";

const region = "local.dev";
const minuteMs = 60_000;
let server: AdminServer;
/** How long ago the agent fell silent. */
let agoMs = 0;

before(async () => {
  const clock = createSystemClock();
  const shifted = { ...clock, nowMs: () => clock.nowMs(), wallMs: () => clock.wallMs() + agoMs };
  server = await startAdminServer({
    regions: [region],
    clock: { ...shifted, setTimer: clock.setTimer.bind(clock) },
  });
  await server.admin.setDeployment(region, applyDeployment({ deploymentId: "d_web", replicas: 1 }));
  const agent = server.agentClient(region);
  const instances = [{ k8sName: "web-0", address: "web-0.acme:8080", status: Status.RUNNING }];
  await agent.reportDeploymentStatus({ change: { case: "update", value: { k8sName: "web", instances } } });
  await report();
});
after(() => server.stop());
beforeEach(() => {
  agoMs = 0;
});

async function report(): Promise<void> {
  const stream = { state: Stream.OPEN, cursor: 1n, settledUpTo: 1n };
  const controllers = [{ name: "deployments", stream, breaker: { state: Breaker.CLOSED }, objects: 1 }];
  await server.agentClient(region).reportAgentState({ state: { version: "1.2.3", controllers } });
}

async function run(...argv: readonly string[]): Promise<string> {
  const io = new FakeIo();
  const env = { KRANE_SERVER: server.url, KRANE_TOKEN: server.tokens.readOnly, KRANE_REGION: region };
  assert.equal(await main(argv, env, io), 0, io.stderr.text);
  return io.stdout.text;
}

test("an agent that was heard within its interval is shown as it is", async () => {
  agoMs = 31_000;
  assert.match(await run("get", "deployments"), / Ready +\d+s +registry/);
  assert.match(await run("describe", "deployment", "d_web"), /^Phase: +Ready$/m);
  assert.match(await run("why", "d_web"), /: Up to date\.$/m);
  const status = await run("status");
  assert.match(status, /^Region local\.dev: agent 1\.2\.3, last heard 3\ds ago, newest version 1$/m);
  assert.match(status, /^ {2}deployments +open +1 .* sent /m);
  const { objects } = JSON.parse(await run("get", "deployments", "-o", "json"));
  assert.deepEqual([objects[0].agentSilent, objects[0].phase], [false, "PHASE_READY"]);
});

test("get and describe say when a silent agent was last heard", async () => {
  agoMs = 2 * minuteMs + 1_000;
  assert.match(await run("get", "deployments"), / Ready, last heard 2m ago +\d+s +registry/);
  assert.match(await run("get", "all"), / Ready, last heard 2m ago/);
  assert.match(await run("get", "deployment", "d_web"), / Ready, last heard 2m ago +\d+s +registry/);
  assert.match(await run("describe", "deployment", "d_web"), /^Phase: +Ready, last heard 2m ago$/m);
});

test("get tells programs that the agent is silent, and keeps every field", async () => {
  agoMs = 2 * minuteMs;
  const list = JSON.parse(await run("get", "deployments", "-o", "json"));
  const one = JSON.parse(await run("get", "deployment", "d_web", "-o", "json"));
  assert.deepEqual(Object.keys(list), ["objects", "nextPageToken"]);
  assert.deepEqual(list.objects, [one]);
  assert.equal(one.agentSilent, true);
  assert.ok(Number(one.agentHeardAtMs) > 1_600_000_000_000, one.agentHeardAtMs);
  assert.equal(one.ref.id, "d_web");
  assert.equal(one.phase, "PHASE_READY");
});

test("why names the silence before anything that the agent reported", async () => {
  agoMs = minuteMs;
  const { cause, summary } = JSON.parse(await run("why", "d_web", "-o", "json"));
  assert.equal(cause, "agent-silent");
  assert.match(summary, /^The agent of region local\.dev was last heard 1m ago;/);
});

test("status does not show the streams and reports of a silent agent as working", async () => {
  agoMs = 2 * minuteMs;
  const status = await run("status");
  assert.match(
    status,
    /^Region local\.dev: agent 1\.2\.3, last heard 2m ago, state from 2m ago, newest version 1$/m,
  );
  assert.match(status, /^ {2}deployments +unknown +1 .* unknown +1 /m);
  assert.doesNotMatch(status, /open|sent/);
});

test("an agent that sends heartbeats but no state is not silent, and its state has its age", async () => {
  agoMs = 5 * minuteMs;
  await server.agentClient(region).heartbeat({});
  const status = await run("status");
  assert.match(status, /last heard 0s ago, state from 5m ago, newest/);
  assert.doesNotMatch(status, /open/);
  agoMs = 0;
  await report();
});
