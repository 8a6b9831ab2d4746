// The agent's own client against the reference control plane: two halves of one
// contract, written apart.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { type ControlPlane, createControlPlane } from "../../../src/control-plane/connection.ts";
import { ControlPlaneError } from "../../../src/control-plane/error.ts";
import { DeploymentStateSchema } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import {
  aws,
  deployment,
  policy,
  readStream,
  sentinel,
  serveControlPlane,
  token,
} from "./served-control-plane.ts";

const { signal } = new AbortController();
const awsKey = { name: "us-east-1", platform: "aws", label: aws };

function connectAgent(t: TestContext, baseUrl: string, region = awsKey, bearer = token): ControlPlane {
  const secret = { current: async () => new Secret(bearer), refresh: () => undefined };
  const client = createControlPlane(
    { controller: "deployments", baseUrl, region, token: secret },
    { clock: createSystemClock() },
  );
  t.after(() => client.close());
  return client;
}

async function serve(t: TestContext) {
  const server = await serveControlPlane(t, "h2c");
  await server.admin.setDeployment(aws, deployment(1));
  await server.admin.setSentinel(aws, sentinel(1));
  await server.admin.setPolicy(aws, policy(1));
  return { ...server, url: server.running?.url ?? "" };
}

const hasCode = (code: string) => (error: unknown) =>
  error instanceof ControlPlaneError && error.code === code;

describe("the agent's client and the reference control plane", () => {
  test("every call is understood", async (t) => {
    const { admin, url } = await serve(t);
    const agent = connectAgent(t, url);
    const deployments = readStream(t, (options) => agent.watch(kinds.deployment, 0n, options.signal));
    const sentinels = readStream(t, (options) => agent.watch(kinds.sentinel, 0n, options.signal));
    const policies = readStream(t, (options) => agent.watch(kinds.policy, 0n, options.signal));
    const [state] = await deployments.take(1);
    assert.equal((await sentinels.take(1))[0]?.version, 2n);
    assert.equal((await policies.take(1))[0]?.version, 3n);
    const first = await agent.get(kinds.deployment, { id: "d_1" }, signal);
    if (first.kind !== "found" || state === undefined) assert.fail("it was not found");
    const knownFingerprint = first.fingerprint || assert.fail("it has no fingerprint");
    // As JSON, because bytes are a Buffer in one and a Uint8Array in the other.
    assert.deepEqual(toJson(DeploymentStateSchema, first.state), toJson(DeploymentStateSchema, state));
    assert.deepEqual(await agent.get(kinds.deployment, { id: "d_1", knownFingerprint }, signal), {
      kind: "same",
    });
    const other = await agent.get(
      kinds.deployment,
      { id: "d_1", knownFingerprint: "of something else" },
      signal,
    );
    assert.deepEqual(other, first);
    assert.deepEqual(await agent.get(kinds.sentinel, { id: "s_9" }, signal), { kind: "not-found" });
    assert.equal((await agent.get(kinds.policy, { id: "p_1" }, signal)).kind, "found");

    const value = { k8sName: "app-1", instances: [{ k8sName: "pod" }] };
    await agent.report(kinds.deployment, { change: { case: "update", value } }, signal);
    await agent.report(kinds.sentinel, { k8sName: "gate-1", availableReplicas: 1 }, signal);
    await agent.heartbeat(signal);
    await agent.reportAgentState({ state: { instanceId: "ins_1" } }, signal);
    assert.equal((await admin.instances(aws, "d_1"))[0]?.k8sName, "pod");
    assert.equal((await admin.sentinelStatus(aws, "s_1"))?.availableReplicas, 1);
    const [record] = await admin.agents();
    assert.ok(record?.heartbeatAtMs !== undefined);
    assert.equal(record.state?.report.state?.instanceId, "ins_1");
  });

  test("refusals arrive with their codes, and a cut with its hint", async (t) => {
    const { faults, url } = await serve(t);
    const stranger = connectAgent(t, url, awsKey, "wrong");
    await assert.rejects(stranger.get(kinds.deployment, { id: "d_1" }, signal), hasCode("unauthenticated"));
    const lost = connectAgent(t, url, { name: "nowhere", platform: "", label: "nowhere" });
    await assert.rejects(lost.get(kinds.deployment, { id: "d_1" }, signal), hasCode("failed_precondition"));
    const agent = connectAgent(t, url);
    const ahead = readStream(t, (options) => agent.watch(kinds.deployment, 9n, options.signal));
    assert.ok(hasCode("out_of_range")(await ahead.ending()));
    const report = agent.report(
      kinds.deployment,
      { change: { case: "delete", value: { k8sName: "app-9" } } },
      signal,
    );
    await assert.rejects(report, hasCode("not_found"));
    const stream = readStream(t, (options) => agent.watch(kinds.deployment, 0n, options.signal));
    await stream.take(1);
    faults.cutStreams();
    const ending = await stream.ending();
    assert.ok(ending instanceof ControlPlaneError);
    assert.deepEqual([ending.code, ending.retryAfterMs], ["unavailable", 1_000]);
  });

  test("a region whose platform is set on its own is one region in all three places", async (t) => {
    const { admin, url } = await serve(t);
    await admin.registerRegion("eu.central");
    await admin.setDeployment("eu.central", deployment(7));
    const agent = connectAgent(t, url, { name: "eu.central", platform: "aws", label: "eu.central" });
    const stream = readStream(t, (options) => agent.watch(kinds.deployment, 0n, options.signal));
    assert.equal((await stream.take(1))[0]?.version, 1n);
    assert.equal((await agent.get(kinds.deployment, { id: "d_7" }, signal)).kind, "found");
  });
});
