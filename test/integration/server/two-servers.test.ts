// Two servers on one database, and the tokens of regions, with everything real but the
// process: PostgreSQL, sockets, HTTP/2.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Code, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { ClientConfig } from "pg";
import { ClusterService } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { RuntimeError } from "../../../src/runtime/runtime-error.ts";
import { connectAlone } from "../../../src/server/postgres/database.ts";
import { type OpenDatabase, openDatabase } from "../../store/store-target.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { DesiredFollower } from "../../support/desired-follower.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { freePort } from "../../support/krane-process.ts";
import { hasCode } from "../../support/refusals.ts";
import { type RunningServer, startServer } from "../../support/running-server.ts";

const [regionA, regionB] = ["a.test", "b.test"];
const [tokenA, tokenB] = ["token-of-region-a", "token-of-region-b"];

let target: OpenDatabase;
let folder = "";
const stops: (() => Promise<void>)[] = [];

async function start(more: Readonly<Record<string, string>> = {}): Promise<RunningServer> {
  const tokens = join(folder, "tokens");
  const flags = { "database-url": target.url, "agent-tokens-file": tokens, listen: "127.0.0.1:0", ...more };
  const server = await startServer(flags);
  stops.push(() => server.stop());
  return server;
}

function connect({ port }: RunningServer, token: string, region: string) {
  const send: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    if (region !== "") request.header.set("x-krane-region", region);
    return next(request);
  };
  const baseUrl = `http://127.0.0.1:${port}`;
  return createClient(
    ClusterService,
    createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [send] }),
  );
}

let first: RunningServer;
let second: RunningServer;

before(async () => {
  target = await openDatabase();
  folder = await mkdtemp(join(tmpdir(), "krane-two-servers-"));
  await writeFile(join(folder, "tokens"), `# both\n${regionA} ${tokenA}\n${regionB} ${tokenB}\n`);
  [first, second] = await Promise.all([start(), start()]);
});

after(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await target.close();
  await rm(folder, { recursive: true });
});

test("a change that was made at one server reaches the streams of both", async () => {
  const stopped = new AbortController();
  const followers = [first, second].map(
    ({ port }) =>
      new DesiredFollower({ url: () => `http://127.0.0.1:${port}`, region: regionA, token: tokenA }),
  );
  const following = followers.map((follower) => follower.run(stopped.signal));
  for (let number = 1; number <= 20; number++) {
    const server = number % 2 === 0 ? first : second;
    const spec = applyDeployment({
      deploymentId: "d",
      k8sName: "web",
      image: `registry.example/web:${number}`,
    });
    const version = await server.admin.setDeployment(regionA, spec);
    await eventually("both have it", () => {
      for (const follower of followers) assert.ok(follower.cursor >= version, "not yet");
    });
  }
  assert.deepEqual([...(followers[0]?.images ?? [])], [...(followers[1]?.images ?? [])]);
  stopped.abort();
  await Promise.all(following);
});

test("a token is valid for its own region only, in every call", async () => {
  await connect(first, tokenA, regionA).heartbeat({});
  const key = { regionKey: { name: "b", platform: "test" } };
  const stranger = connect(first, tokenA, regionB);
  const bare = connect(first, tokenA, "");
  const calls = [
    () => stranger.getDesiredDeploymentState({ deploymentId: "d" }),
    () => stranger.getDesiredSentinelState({ sentinelId: "d" }),
    () => stranger.getDesiredCiliumNetworkPolicyState({ ciliumNetworkPolicyId: "d" }),
    () => stranger.reportDeploymentStatus({ change: { case: "delete", value: { k8sName: "web" } } }),
    () => stranger.reportSentinelStatus({ k8sName: "web" }),
    () => stranger.heartbeat({}),
    () => stranger.reportAgentState({ state: {} }),
    () => bare.reportAgentState({ state: {}, ...key }),
    () => bare.getDesiredDeploymentState({ deploymentId: "d", ...key }),
    () => readOne(bare.watchDeployments({ region: regionB })),
    () => readOne(bare.watchSentinels({ region: regionB })),
    () => readOne(bare.watchCiliumNetworkPolicies({ region: regionB })),
    () => connect(first, tokenA, "nowhere.test").heartbeat({}),
  ];
  for (const call of calls) await assert.rejects(call(), hasCode(Code.PermissionDenied));
  await assert.rejects(
    connect(first, "no-token-of-anybody", regionA).heartbeat({}),
    hasCode(Code.Unauthenticated),
  );
  const [, b] = await first.admin.agents();
  assert.equal(b?.heartbeatAtMs, undefined, "nothing was reported for the other region");
});

test("an agent that comes back while many do is told when, and comes in then", async () => {
  const slow = await start({ "stream-rate": "3" });
  const stopped = new AbortController();
  const followers = Array.from(
    { length: 8 },
    () => new DesiredFollower({ url: () => `http://127.0.0.1:${slow.port}`, region: regionA, token: tokenA }),
  );
  const following = followers.map((follower) => follower.run(stopped.signal));
  await eventually("all are inside", () =>
    assert.ok(
      followers.every(({ cursor }) => cursor > 0n),
      "not yet",
    ),
  );
  assert.ok(followers.some(({ hints }) => hints > 0));
  stopped.abort();
  await Promise.all(following);
});

test("a database that ends every connection costs no stream and no change", async () => {
  const stopped = new AbortController();
  const url = () => `http://127.0.0.1:${second.port}`;
  const follower = new DesiredFollower({ url, region: regionB, token: tokenB });
  const following = follower.run(stopped.signal);
  const admin = first.admin;
  const set = (number: number) =>
    admin.setDeployment(
      regionB,
      applyDeployment({ deploymentId: "d", k8sName: "web", image: `registry.example/web:${number}` }),
    );
  await set(1);
  await eventually("it follows", () => assert.equal(follower.cursor, 1n));
  for (let round = 2; round <= 4; round++) {
    await endConnections(target.database);
    const version = await eventually("the change is taken", () => set(round));
    await eventually("it arrives", () => assert.equal(follower.cursor, version));
  }
  assert.equal(follower.connections, 1);
  stopped.abort();
  await following;
});

async function endConnections(config: ClientConfig): Promise<void> {
  const client = await connectAlone(config);
  await client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'krane server%' AND application_name <> 'krane server: owner' AND pid <> pg_backend_pid()",
  );
  await client.end();
}

async function readOne<T>(stream: AsyncIterable<T>): Promise<T | undefined> {
  for await (const message of stream) return message;
  return undefined;
}

test("a metrics port that fails ends its server, as the other port does", async () => {
  const server = await start({ "prometheus-port": String(await freePort()) });
  stops.pop();
  let listener: Server | undefined;
  const remember = (message: unknown) => {
    listener = (message as { readonly server: Server }).server;
  };
  subscribe("http.server.request.start", remember);
  assert.equal((await fetchHttp1(server.metricsUrl ?? "")).status, 200);
  unsubscribe("http.server.request.start", remember);
  const failure = new Error("the port is gone");
  listener?.emit("error", failure);
  await assert.rejects(server.ended, (error) => {
    assert.ok(error instanceof AggregateError);
    const [cause, ...others] = error.errors;
    assert.deepEqual(others, []);
    assert.ok(cause instanceof RuntimeError && cause.code === "task_failed");
    assert.equal(cause.message, "metrics port: the port is gone");
    return cause.cause === failure;
  });
});
