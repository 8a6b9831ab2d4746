// A document of an instance, from the instance to the caller: SchedulerService on a port, the deployment
// controller that knows from Kubernetes where the instance is, and a real HTTP server in its place. Of all
// that only the network is made up: the address of a pod leads to this machine.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../../src/concurrency/random.ts";
import { SchedulerService } from "../../../src/gen/krane/v1/scheduler_pb.ts";
import { routeByPath } from "../../../src/http/http-handler.ts";
import { startHttpPort } from "../../../src/http/http-port.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import {
  createDocumentFetch,
  type DocumentAddress,
  defaultDocumentLimits,
} from "../../../src/services/document-fetch.ts";
import { rpcRoutes } from "../../../src/services/rpc-routes.ts";
import { schedulerServiceRoutes } from "../../../src/services/scheduler-service.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { createTestControlPlane, startTestCluster } from "../../../src/testing.ts";
import { defaultOptions } from "../../simulation/simulated-region.ts";
import { applyDeployment, environmentOf } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { testSeal } from "../../support/test-seal.ts";
import { secretOf } from "../../support/vault-fixture.ts";
import { schedulerToken } from "./scheduler-world.ts";

const createDeploymentController = await kinds.deployment.loadController();
const createSentinelController = await kinds.sentinel.loadController();

const never = new AbortController().signal;
const name = { namespace: "acme", name: "web" };

type Instance = (request: IncomingMessage, response: ServerResponse) => void;

interface World {
  readonly client: Client<typeof SchedulerService>;
  /** Where krane believed the instance to be, each time. */
  readonly asked: readonly DocumentAddress[];
}

/** A deployment whose instance answers like this, behind a SchedulerService. */
async function createWorld(t: TestContext, instance: Instance): Promise<World> {
  const server = createServer(instance).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;

  const cluster = await startTestCluster();
  t.after(() => cluster.stop());
  const plane = await createTestControlPlane({ region: "local.dev" });
  const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const connect = (controller: "deployments" | "sentinels") => ({
    ...deps,
    metrics,
    api: cluster.connect("krane").api,
    controlPlane: plane.connect(controller),
    seal: testSeal,
  });
  const deployments = createDeploymentController(defaultOptions, connect("deployments"));
  const sentinels = createSentinelController(defaultOptions, connect("sentinels"));
  await deployments.start();
  t.after(() => deployments.stop());

  const asked: DocumentAddress[] = [];
  const fetchHere = createDocumentFetch(defaultDocumentLimits, deps);
  const routes = schedulerServiceRoutes(secretOf(schedulerToken), {
    ...deps,
    metrics,
    target: () => ({ deployments, sentinels }),
    fetchDocument(address, signal) {
      asked.push(address);
      return fetchHere({ ...address, ip: "127.0.0.1" }, signal);
    },
  });
  const client = await serve(t, routes, deps);
  const value = applyDeployment({ port, replicas: 1 });
  await plane.admin.applyEnvironment({ region: plane.region, ...environmentOf() });
  await plane.admin.applyObject({ region: plane.region, spec: { spec: { case: "deployment", value } } });
  await eventually("the instance runs", () => {
    assert.equal(deployments.seen.get("acme/web")?.sockets.length, 1);
  });
  return { client, asked };
}

async function serve(
  t: TestContext,
  routes: Parameters<typeof rpcRoutes>[0],
  deps: Pick<Parameters<typeof startHttpPort>[2], "clock" | "log">,
): Promise<Client<typeof SchedulerService>> {
  const listening = await startHttpPort(
    routeByPath(rpcRoutes(routes)),
    { port: 0, host: "127.0.0.1", setting: "test" },
    { ...deps, readTextFile: () => assert.fail("no file is needed") },
    never,
  );
  t.after(() => listening.stop(AbortSignal.abort()));
  const transport = createConnectTransport({
    baseUrl: `http://127.0.0.1:${listening.port}`,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${schedulerToken}`);
        return next(request);
      },
    ],
  });
  return createClient(SchedulerService, transport);
}

const refusedWith = (code: Code) => (error: unknown) => ConnectError.from(error).code === code;

test("a caller gets the document that the instance gives, by the path and the query that it asked for", async (t) => {
  const seen: IncomingMessage[] = [];
  const { client, asked } = await createWorld(t, (request, response) => {
    seen.push(request);
    response.setHeader("content-type", "application/json").end('{"openapi":"3.1.0","info":{"title":"é"}}');
  });
  const { spec } = await client.scrapeOpenApiSchema({ ...name, path: "/v1/openapi.json?full=1" });
  assert.equal(spec, '{"openapi":"3.1.0","info":{"title":"é"}}');
  const [request] = seen;
  assert.deepEqual([seen.length, request?.method, request?.url], [1, "GET", "/v1/openapi.json?full=1"]);
  // The token of the caller is krane's business.
  assert.equal(request?.headers.authorization, undefined);
  assert.match(asked[0]?.ip ?? "", /^10\.\d+\.\d+\.\d+$/);
});

test("what the instance refuses, redirects or overdoes is an error, and nothing is followed", async (t) => {
  const paths: (string | undefined)[] = [];
  const { client } = await createWorld(t, (request, response) => {
    paths.push(request.url);
    if (request.url === "/moved") response.writeHead(302, { location: "/secret" }).end();
    else if (request.url === "/large") response.end("x".repeat(1024 * 1024 + 1));
    else response.writeHead(404).end();
  });
  const scrape = (path: string) => client.scrapeOpenApiSchema({ ...name, path });
  await assert.rejects(scrape("/none"), refusedWith(Code.FailedPrecondition));
  await assert.rejects(scrape("/moved"), refusedWith(Code.FailedPrecondition));
  await assert.rejects(scrape("/large"), refusedWith(Code.ResourceExhausted));
  await assert.rejects(scrape("/../up"), refusedWith(Code.InvalidArgument));
  await assert.rejects(
    client.scrapeOpenApiSchema({ namespace: "acme", name: "other", path: "/" }),
    refusedWith(Code.NotFound),
  );
  assert.deepEqual(paths, ["/none", "/moved", "/large"]);
});
