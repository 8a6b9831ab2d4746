// Two agents of one region with their ports: what changes something and reaches the standby is done by the leader.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http2";
import { describe, type TestContext, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { challengeHeader, leaderProofPath } from "../../../src/agent/leader-proof.ts";
import { SchedulerService } from "../../../src/gen/krane/v1/scheduler_pb.ts";
import { leases, replicaSets } from "../../../src/kube/resources.ts";
import { annotationKeys } from "../../../src/model/labels.ts";
import { forwardedHeader } from "../../../src/services/leader-calls.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { withScheduler } from "../scheduler/scheduler-world.ts";
import { type AgentWorld, agentClient, createAgentWorld } from "./agent-world.ts";

const never = new AbortController().signal;
const schedulerToken = /"(.*)"/.exec(withScheduler)?.[1] ?? "";
const order = {
  k8sNamespace: "acme",
  k8sName: "web",
  workspaceId: "ws_1",
  projectId: "proj_1",
  environmentId: "env_1",
  deploymentId: "d_1",
  image: "registry.example/acme/web:1",
  replicas: 1,
  cpuMillicores: 250n,
  memoryMib: 256n,
};

interface PairOptions {
  /** Where the leader is to be called; the other one has no address. */
  readonly address?: string;
  readonly tls?: boolean;
}

async function startPair(t: TestContext, { address = "127.0.0.1", tls = false }: PairOptions = {}) {
  const world = await createAgentWorld(t);
  const files: Record<string, string> = {};
  const start = async (name: string, top = "") => {
    if (tls) {
      for (const part of ["cert", "key"])
        files[`${name}.${part}.pem`] = await readFile(`testdata/tls/${name}.${part}.pem`, "utf8");
    }
    const certificate = tls ? `[tls]\ncert_file = "${name}.cert.pem"\nkey_file = "${name}.key.pem"\n` : "";
    const settings = `instance_id = "${name}"\nlease = "required"\n${top}\n`;
    return world.startAgent(withScheduler + certificate, { top: settings, files });
  };
  const announced = address === "" ? "" : `advertise_address = "${address}"`;
  const leader = await start("first", announced);
  const standby = await start("second");
  return { ...world, leader, standby };
}

function schedulerClient(baseUrl: string, headers: Readonly<Record<string, string>> = {}) {
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "1.1",
    // Whom clients trust is not what is tested here.
    nodeOptions: baseUrl.startsWith("https") ? { rejectUnauthorized: false } : {},
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${schedulerToken}`);
        for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
        return next(request);
      },
    ],
  });
  return createClient(SchedulerService, transport);
}

async function isThere({ cluster }: AgentWorld): Promise<boolean> {
  return (await cluster.api.get(replicaSets, { namespace: "acme", name: "web" }, {}, never)) !== undefined;
}

const unavailable = (text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ConnectError);
  assert.equal(error.code, Code.Unavailable);
  assert.match(error.rawMessage, text);
  return true;
};

/** Has the Lease name another process as the leader's address, until the standby has called it. */
async function assertGetsNoToken(
  t: TestContext,
  { standby, cluster }: Awaited<ReturnType<typeof startPair>>,
  proofFor: (headers: IncomingHttpHeaders) => Promise<string>,
): Promise<void> {
  const received: IncomingHttpHeaders[] = [];
  const impostor = createServer();
  impostor.on("sessionError", () => undefined);
  impostor.on("stream", async (stream, headers) => {
    stream.on("error", () => undefined);
    received.push(headers);
    const proof = headers[":path"] === leaderProofPath ? await proofFor(headers) : "";
    stream.respond({ ":status": 200 });
    stream.end(proof);
  });
  await new Promise<void>((resolve) => impostor.listen(0, "127.0.0.1", resolve));
  t.after(() => impostor.close());
  const address = impostor.address();
  const port = typeof address === "object" ? address?.port : assert.fail("it has no port");

  // As if another pod had got the address of the leader, or somebody had written the Lease.
  const [lease = assert.fail("no lease")] = (await cluster.api.list(leases, {}, never)).items;
  const holder = lease.spec?.holderIdentity ?? "";
  const value = {
    ...lease.metadata?.annotations,
    [annotationKeys.leaderUrl]: `${holder} http://127.0.0.1:${port}`,
  };
  const scheduler = schedulerClient(standby.url);
  const refusals: unknown[] = [];
  await eventually("the standby calls the impostor", async () => {
    // The leader puts its own address back with each renewal.
    const [current = assert.fail("no lease")] = (await cluster.api.list(leases, {}, never)).items;
    const operation = { op: "add", path: "/metadata/annotations", value } as const;
    await cluster.api
      .patch(leases, current, [operation], { fieldManager: "test" }, never)
      .catch(() => undefined);
    await scheduler.applyDeployment(order).catch((error: unknown) => refusals.push(error));
    assert.ok(received.length > 0, "nothing was received");
  });
  assert.deepEqual(
    received.filter((headers) => headers["authorization"] !== undefined),
    [],
    "it got no token",
  );
  for (const refusal of refusals) unavailable(/first leads, and cannot be reached: .*did not prove/)(refusal);
}

describe("calls that reach a standby", () => {
  test("are done by the leader, with its response and its refusals", async (t) => {
    const world = await startPair(t);
    const scheduler = schedulerClient(world.standby.url);
    await scheduler.applyDeployment(order);
    assert.ok(await isThere(world));
    await assert.rejects(scheduler.applyDeployment({ ...order, image: "" }), (error) => {
      assert.ok(error instanceof ConnectError);
      assert.equal(error.code, Code.InvalidArgument);
      assert.match(error.rawMessage, /^image /);
      return true;
    });
    await scheduler.deleteDeployment({ k8sNamespace: "acme", k8sName: "web" });
    assert.equal(await isThere(world), false);
    const agent = agentClient(t, world.standby.url);
    await assert.rejects(agent.releaseDeletion({ controller: "deployments", key: "acme/web" }), (error) => {
      assert.ok(error instanceof ConnectError && error.code === Code.NotFound);
      return true;
    });
    await assert.rejects(agentClient(t, world.standby.url, { bearer: "wrong" }).adoptObject({}), (error) => {
      assert.ok(error instanceof ConnectError && error.code === Code.Unauthenticated);
      return true;
    });
  });

  test("are forwarded over TLS, whatever name the certificate of the leader has", async (t) => {
    const world = await startPair(t, { tls: true });
    await schedulerClient(world.standby.url).applyDeployment(order);
    assert.ok(await isThere(world));
  });

  test("are never forwarded twice", async (t) => {
    const { standby, ...world } = await startPair(t);
    const scheduler = schedulerClient(standby.url, { [forwardedHeader]: "second" });
    await assert.rejects(
      scheduler.applyDeployment(order),
      unavailable(/^not done: .*first leads: retry there$/),
    );
    assert.equal(await isThere(world), false);
  });

  test("fail with the leader's name if it announces no address, and work once the standby leads", async (t) => {
    const { leader, standby, ...world } = await startPair(t, { address: "" });
    const scheduler = schedulerClient(standby.url);
    await assert.rejects(
      scheduler.applyDeployment(order),
      unavailable(/^not done: .*first leads, and announces no address/),
    );
    await leader.stop();
    await eventually("the standby leads", () => scheduler.applyDeployment(order));
    assert.ok(await isThere(world));
  });

  test("go to nobody that does not prove to be the leader", async (t) => {
    await assertGetsNoToken(t, await startPair(t), async () => "a proof that is none");
  });

  test("go to nobody that passes on the proof of the leader, although there is no TLS", async (t) => {
    const pair = await startPair(t);
    const relayed: string[] = [];
    await assertGetsNoToken(t, pair, async ({ [challengeHeader]: challenge }) => {
      const url = `${pair.leader.url}${leaderProofPath}`;
      const headers = { [challengeHeader]: String(challenge) };
      const response = await fetch(url, { method: "POST", headers });
      if (response.ok) relayed.push(String(challenge));
      return response.text();
    });
    assert.notDeepEqual(relayed, []);
  });

  test("a proof needs a challenge", async (t) => {
    const { url } = await (await createAgentWorld(t)).startAgent();
    assert.equal((await fetchHttp1(`${url}/leader-proof`)).status, 400);
  });
});
