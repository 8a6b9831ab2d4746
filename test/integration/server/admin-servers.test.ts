// The admin API of two servers on one database: whatever is done at one is true at the
// other.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AdminService, ObjectKind } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { type OpenDatabase, openDatabase } from "../../store/store-target.ts";
import { applyDeployment, environmentOf } from "../../support/deployment-messages.ts";
import { type RunningServer, startServer } from "../../support/running-server.ts";

const region = "a.test";
const agentTokens = `${region} token-of-the-agents`;
const writeToken = "ann-may-read-and-write";

let target: OpenDatabase;
const running: RunningServer[] = [];

before(async () => {
  target = await openDatabase();
});

after(async () => {
  await Promise.all(running.map((server) => server.stop()));
  await target.close();
});

async function start(adminTokens: string): Promise<RunningServer> {
  const server = await startServer({
    "database-url": target.url,
    "agent-tokens": agentTokens,
    "admin-tokens": adminTokens,
    listen: "127.0.0.1:0",
  });
  running.push(server);
  return server;
}

function adminsOf({ port }: RunningServer) {
  const transport = createConnectTransport({
    baseUrl: `http://127.0.0.1:${port}`,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${writeToken}`);
        return next(request);
      },
    ],
  });
  return createClient(AdminService, transport);
}

const ref = { region, kind: ObjectKind.DEPLOYMENT, id: "d_1a2B3c4D" };
const spec = { spec: { case: "deployment", value: applyDeployment() } } as const;

test("a change at one server is seen at the other, and of two for the same version one is made", async () => {
  const servers = await Promise.all([
    start(`ann read-write ${writeToken}`),
    start(`ann read-write ${writeToken}`),
  ]);
  const [first, second] = servers.map(adminsOf);
  assert.ok(first !== undefined && second !== undefined);
  const left = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { event } of second.watchEvents({ region, after: 0n }, { signal: left.signal })) {
      if (event === undefined) continue;
      seen.push(`${event.entry} ${event.by} ${event.event} v${event.version}`);
      if (seen.length === 4) return;
    }
  })();
  await first.applyEnvironment({ region, ...environmentOf() });
  await first.applyObject({ region, spec });
  const { object } = await second.getObject({ ref });
  assert.equal(object?.version, 1n);
  const scales = await Promise.allSettled(
    [first, second, first, second].map((admins, index) =>
      admins.scaleObject({ ref, replicas: index + 2, expectedVersion: 1n }),
    ),
  );
  const refused = scales.flatMap((scale) => (scale.status === "rejected" ? [scale.reason] : []));
  assert.equal(refused.length, 3);
  for (const error of refused) assert.ok(error instanceof ConnectError && error.code === Code.Aborted);
  await second.deleteObject({ ref });
  await watching;
  left.abort();
  assert.deepEqual(seen, ["1 ann set v1", "2 ann set v1", "3 ann set v2", "4 ann stopped v3"]);
});

test("a server does not start with a token that agents and people have in common", async () => {
  const shared = start("ann read-write token-of-the-agents");
  await assert.rejects(shared, { name: "ServerError", code: "tokens_shared" });
});
