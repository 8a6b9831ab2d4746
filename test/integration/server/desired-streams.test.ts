// What agents get to see of desired state, by stream and by question.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import type { DeploymentState } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { eventually } from "../../support/eventually.ts";
import { hasCode } from "../../support/refusals.ts";
import {
  aws,
  type ClusterClient,
  deployment,
  dev,
  policy,
  readStream,
  roads,
  sentinel,
  serveControlPlane,
} from "./served-control-plane.ts";

const line = ({ state, version }: DeploymentState) =>
  `${version} ${state.case ?? "nothing"} ${state.value?.k8sName ?? ""}`.trim();

const watch = (client: ClusterClient, versionLastSeen = 0n) => {
  return (options: { signal: AbortSignal }) => client.watchDeployments({ versionLastSeen }, options);
};

for (const road of roads) {
  describe(`desired state, ${road}`, () => {
    test("a stream brings what there is in order of version, then each change as it happens", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      await admin.setDeployment(aws, deployment(2));
      await admin.scale(aws, "d_1", 3);
      const stream = readStream(t, watch(connect()));
      assert.deepEqual((await stream.take(2)).map(line), ["2 apply app-2", "3 apply app-1"]);

      await admin.setDeployment(aws, deployment(3));
      assert.deepEqual((await stream.take(1)).map(line), ["4 apply app-3"]);
      await admin.deleteDeployment(aws, "d_2");
      assert.deepEqual((await stream.take(1)).map(line), ["5 delete app-2"]);
    });

    test("every field of a deployment arrives as it was set", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      const full = {
        ...deployment(1),
        workspaceId: "ws_1",
        projectId: "prj_1",
        environmentId: "env_1",
        buildId: "",
        encryptedEnvironmentVariables: Uint8Array.of(0, 255),
        command: ["run", "--fast"],
        port: 3000,
        shutdownSignal: "SIGINT",
        pullSecret: "krane-registry-acme",
        env: { LOG_LEVEL: "info" },
        healthcheck: Uint8Array.of(123, 125),
      };
      await admin.setDeployment(aws, full);
      const [state] = await readStream(t, watch(connect())).take(1);
      assert.ok(state?.state.case === "apply");
      const { $typeName: _, ...received } = state.state.value;
      assert.deepEqual(received, full);
    });

    test("a replay from 0 brings a delete for whatever was stopped, a resumed stream only what is new", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      await admin.setDeployment(aws, deployment(2));
      await admin.deleteDeployment(aws, "d_1");
      const all = await readStream(t, watch(connect())).take(2);
      assert.deepEqual(all.map(line), ["2 apply app-2", "3 delete app-1"]);
      const rest = await readStream(t, watch(connect(), 2n)).take(1);
      assert.deepEqual(rest.map(line), ["3 delete app-1"]);
    });

    test("all kinds share the counter of their region, and each stream brings its own", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      await admin.setSentinel(aws, sentinel(1));
      await admin.setPolicy(aws, policy(1), "d_1");
      const client = connect();
      const sentinels = readStream(t, (options) => client.watchSentinels({}, options));
      const policies = readStream(t, (options) => client.watchCiliumNetworkPolicies({}, options));
      const [gate] = await sentinels.take(1);
      const [rule] = await policies.take(1);
      assert.deepEqual([gate?.version, gate?.state.case], [2n, "apply"]);
      assert.deepEqual([rule?.version, rule?.state.case], [3n, "apply"]);

      await admin.deleteDeployment(aws, "d_1");
      const [gone] = await policies.take(1);
      assert.deepEqual(
        [gone?.version, gone?.state.case],
        [5n, "delete"],
        "a policy goes with its deployment",
      );
      await admin.deleteSentinel(aws, "s_1");
      const [stopped] = await sentinels.take(1);
      assert.deepEqual([stopped?.version, stopped?.state.value?.k8sName], [6n, "gate-1"]);
    });

    test("two agents of two regions get each their own", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      const east = readStream(t, watch(connect()));
      const local = readStream(t, watch(connect({ "x-krane-region": dev })));
      await admin.setDeployment(aws, deployment(1));
      await admin.setDeployment(dev, deployment(2));
      await admin.setDeployment(aws, deployment(3));
      await admin.setDeployment(dev, deployment(4));
      assert.deepEqual((await east.take(2)).map(line), ["1 apply app-1", "2 apply app-3"]);
      assert.deepEqual((await local.take(2)).map(line), ["1 apply app-2", "2 apply app-4"]);
    });

    test("the answer to a question is what the stream says, version included", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      const client = connect();
      const stream = readStream(t, watch(client));
      await admin.setDeployment(aws, deployment(1));
      await admin.setSentinel(aws, sentinel(1));
      await admin.setPolicy(aws, policy(1));
      const [applied] = await stream.take(1);
      assert.deepEqual(await client.getDesiredDeploymentState({ deploymentId: "d_1" }), applied);
      await admin.deleteDeployment(aws, "d_1");
      const [deleted] = await stream.take(1);
      assert.equal(deleted?.state.case, "delete");
      assert.deepEqual(await client.getDesiredDeploymentState({ deploymentId: "d_1" }), deleted);
      const gate = await client.getDesiredSentinelState({ sentinelId: "s_1" });
      assert.deepEqual([gate.version, gate.state.case], [2n, "apply"]);
      const rule = await client.getDesiredCiliumNetworkPolicyState({ ciliumNetworkPolicyId: "p_1" });
      assert.deepEqual([rule.version, rule.state.case], [3n, "apply"]);
    });

    test("what has no row is not found, and a question without an id is refused", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      const client = connect();
      await admin.setDeployment(aws, deployment(1));
      await admin.forgetDeployment(aws, "d_1");
      await admin.setSentinel(dev, sentinel(1));
      await assert.rejects(client.getDesiredDeploymentState({ deploymentId: "d_1" }), hasCode(Code.NotFound));
      await assert.rejects(client.getDesiredSentinelState({ sentinelId: "s_1" }), hasCode(Code.NotFound));
      await assert.rejects(client.getDesiredDeploymentState({}), hasCode(Code.InvalidArgument));
      await assert.rejects(client.getDesiredSentinelState({}), hasCode(Code.InvalidArgument));
      await assert.rejects(client.getDesiredCiliumNetworkPolicyState({}), hasCode(Code.InvalidArgument));
    });

    test("a cursor above the counter is out of range, one at the counter is not", async (t) => {
      const { admin, faults, connect } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      await admin.setSentinel(aws, sentinel(1));
      const atCounter = readStream(t, watch(connect(), 2n));
      assert.ok(hasCode(Code.OutOfRange)(await readStream(t, watch(connect(), 3n)).ending()));
      await admin.setDeployment(aws, deployment(2));
      assert.deepEqual((await atCounter.take(1)).map(line), ["3 apply app-2"]);

      faults.restoreFromEmpty(aws);
      assert.ok(hasCode(Code.Unavailable)(await atCounter.ending()));
      assert.ok(hasCode(Code.OutOfRange)(await readStream(t, watch(connect(), 3n)).ending()));
      await admin.setDeployment(aws, deployment(9));
      assert.deepEqual((await readStream(t, watch(connect())).take(1)).map(line), ["1 apply app-9"]);
    });

    test("versions above 2^53 are exact", async (t) => {
      const { admin, faults, connect } = await serveControlPlane(t, road);
      const far = 2n ** 63n + 1n;
      faults.setCounter(aws, far);
      await admin.setDeployment(aws, deployment(1));
      await admin.setDeployment(aws, deployment(2));
      const states = await readStream(t, watch(connect(), far + 1n)).take(1);
      assert.deepEqual(states.map(line), [`${far + 2n} apply app-2`]);
      const answer = await connect().getDesiredDeploymentState({ deploymentId: "d_1" });
      assert.equal(answer.version, far + 1n);
    });

    test("an unreadable row moves the cursor, and does not hold up what comes after it", async (t) => {
      const { admin, faults, connect } = await serveControlPlane(t, road);
      faults.insertUnreadable(aws, "deployment", deployment(1));
      await admin.setDeployment(aws, deployment(2));
      const states = await readStream(t, watch(connect())).take(2);
      assert.deepEqual(states.map(line), ["1 nothing", "2 apply app-2"]);
      const question = connect().getDesiredDeploymentState({ deploymentId: "d_1" });
      await assert.rejects(question, hasCode(Code.Internal));
    });

    test("a row that appears behind the cursor is brought by a replay only", async (t) => {
      const { admin, faults, connect } = await serveControlPlane(t, road);
      await admin.setSentinel(aws, sentinel(1));
      await admin.setDeployment(aws, deployment(2));
      const stream = readStream(t, watch(connect()));
      await stream.take(1);
      faults.insertBehind(aws, "deployment", deployment(1), 1n);
      await admin.setDeployment(aws, deployment(3));
      assert.deepEqual((await stream.take(1)).map(line), ["3 apply app-3"]);
      const replay = await readStream(t, watch(connect())).take(3);
      assert.deepEqual(replay.map(line), ["1 apply app-1", "2 apply app-2", "3 apply app-3"]);
    });

    test("a burst of 1,000 deployments arrives whole and in order", async (t) => {
      const { admin, connect } = await serveControlPlane(t, road);
      const stream = readStream(t, watch(connect()));
      const count = 1_000;
      await Promise.all(Array.from({ length: count }, (_, n) => admin.setDeployment(aws, deployment(n))));
      const states = await stream.take(count);
      assert.deepEqual(
        states.map(line),
        Array.from({ length: count }, (_, n) => `${n + 1} apply app-${n}`),
      );
    });

    test("a stream ends at the server when its client cancels", async (t) => {
      const { admin, faults, connect } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      const stream = readStream(t, watch(connect()));
      await stream.take(1);
      assert.equal(faults.openStreams, 1);
      stream.cancel();
      await eventually("the stream is closed", () => assert.equal(faults.openStreams, 0));
    });

    test("cut streams end with a hint when to come back, and new ones are let in", async (t) => {
      const { admin, faults, connect } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      const stream = readStream(t, watch(connect()));
      await stream.take(1);
      faults.cutStreams();
      const error = await stream.ending();
      assert.ok(error instanceof ConnectError);
      assert.equal(error.code, Code.Unavailable);
      assert.equal(error.metadata.get("retry-after"), "1");
      assert.deepEqual((await readStream(t, watch(connect())).take(1)).map(line), ["1 apply app-1"]);
    });

    test("a paused stream stays open, and brings the newest state when it goes on", async (t) => {
      const { admin, faults, connect } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      const stream = readStream(t, watch(connect()));
      await stream.take(1);
      faults.pauseStreams();
      await admin.setDeployment(aws, deployment(2));
      const arrived = stream.take(1);
      // An answer that comes after the change shows that the server had time to send it.
      await connect().getDesiredDeploymentState({ deploymentId: "d_2" });
      assert.equal(faults.openStreams, 1);
      faults.resumeStreams();
      assert.deepEqual((await arrived).map(line), ["2 apply app-2"]);
    });
  });
}
