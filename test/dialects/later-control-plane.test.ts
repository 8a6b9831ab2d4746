// Control planes of later versions of the original: the same package and method names, but one change stream in place of
// three, and other messages. The agent must recognise one, and do nothing: no heartbeat, no object, no delete.
import assert from "node:assert/strict";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { controlPlaneCheck } from "../../src/doctor/control-plane-check.ts";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { StreamStatus_State as State } from "../../src/gen/krane/v1/agent_pb.ts";
import { namespaces, replicaSets } from "../../src/kube/resources.ts";
import {
  agentClient,
  agentToken,
  createAgentWorld,
  parse,
  region,
} from "../integration/agent/agent-world.ts";
import { eventually } from "../support/eventually.ts";
import { replicaSetOfOlderAgent } from "../support/older-agent.ts";

const never = new AbortController().signal;

/** Answers as those versions do: no stream that this agent knows, and every object is unknown. */
async function serveLaterVersion(t: TestContext) {
  const calls: string[] = [];
  const unknown = (call: string) => () => {
    calls.push(call);
    throw new ConnectError("region not found", Code.NotFound);
  };
  const taken = (call: string) => () => {
    calls.push(call);
    return {};
  };
  const routes = (router: ConnectRouter) =>
    void router.service(ClusterService, {
      heartbeat: taken("heartbeat"),
      reportDeploymentStatus: taken("report"),
      reportSentinelStatus: taken("report"),
      getDesiredDeploymentState: unknown("get"),
      getDesiredSentinelState: unknown("get"),
      getDesiredCiliumNetworkPolicyState: unknown("get"),
    });
  const server = createServer(connectNodeAdapter({ routes }));
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls };
}

test("an agent says that its control plane speaks another version, sends no heartbeat and deletes nothing", async (t) => {
  const { url, calls } = await serveLaterVersion(t);
  const { cluster, startAgent } = await createAgentWorld(t);
  await cluster.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  const left = replicaSetOfOlderAgent("acme");
  await cluster.api.apply(replicaSets, left, { fieldManager: "krane", force: false }, never);
  const read = async () => {
    const found = await cluster.api.get(replicaSets, { namespace: "acme", name: "web" }, {}, never);
    const { uid, generation, annotations } = found?.metadata ?? {};
    return { uid, generation, annotations };
  };
  const before = await read();

  const agent = await startAgent("", { control: `url = "${url}"\ntoken = "t-1234567890"` });
  const client = agentClient(t, agent.url);
  await eventually("the status says so", async () => {
    const { status } = await client.getStatus({});
    assert.match(status?.warnings.join() ?? "", /another version of the protocol/);
    assert.deepEqual(
      status?.controllers.map(({ stream }) => stream?.lastErrorCode),
      ["unimplemented", "unimplemented", "unimplemented", "unimplemented"],
    );
  });
  const asked = calls.length;
  await eventually("the streams were tried again", async () => {
    const { status } = await client.getStatus({});
    const streams = (status?.controllers ?? []).flatMap(({ stream }) => stream ?? []);
    // That of an addition is tried again much later.
    for (const { state, reconnects } of streams.filter(({ state }) => state !== State.UNSUPPORTED))
      assert.ok(reconnects > 0, `not yet: ${state}`);
  });
  // Not one call that such a control plane could misread, since the streams showed what it is.
  assert.deepEqual(calls.slice(asked), []);
  assert.deepEqual(
    calls.filter((call) => call !== "get"),
    [],
  );
  assert.deepEqual((await client.listBlockedDeletions({})).blockedDeletions, []);
  assert.deepEqual(await read(), before);
});

test("krane doctor names a control plane of another version, and no other", async (t) => {
  const { url } = await serveLaterVersion(t);
  const { running } = await createAgentWorld(t);
  const check = async (controlUrl: string, token: string) => {
    const config = parse(`region = "${region}"\n[control]\nurl = "${controlUrl}"\ntoken = "${token}"\n`);
    const deps = { clock: createSystemClock(), readTextFile: () => assert.fail("no file is needed") };
    const [finding] = await controlPlaneCheck(config, deps).run(never);
    return finding;
  };
  const other = await check(url, agentToken);
  assert.equal(other?.state, "problem");
  assert.match(other?.finding ?? "", /another version of the protocol/);
  const own = await check(running?.url ?? assert.fail("it is not served"), "kct_of_the_test");
  assert.equal(own?.state, "ok", own?.finding);
});
