import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";
import { createHealth } from "../http/health.ts";
import { grpcHealthRoutes } from "./grpc-health.ts";

const service = "krane.v1.AgentService";

function serve() {
  const clock = new FakeClock();
  const health = createHealth(new Map(), { clock });
  const transport = createRouterTransport(grpcHealthRoutes(health, new Set([service]), { clock }));
  return { health, client: createClient(HealthService, transport) };
}

async function statusesOf(watch: AsyncIterable<{ status: Status }>): Promise<Status[]> {
  const statuses: Status[] = [];
  for await (const { status } of watch) statuses.push(status);
  return statuses;
}

describe("grpc.health.v1.Health", () => {
  test("follows krane's phase, as a whole and for each service", async () => {
    const { health, client } = serve();
    const check = async (name: string) => (await client.check({ service: name })).status;
    assert.deepEqual([await check(""), await check(service)], [Status.NOT_SERVING, Status.NOT_SERVING]);
    health.markStarted();
    assert.deepEqual([await check(""), await check(service)], [Status.SERVING, Status.SERVING]);
    health.markShuttingDown();
    assert.deepEqual([await check(""), await check(service)], [Status.NOT_SERVING, Status.NOT_SERVING]);
  });

  test("rejects services that the port does not serve", async () => {
    const { client } = serve();
    const refused = client.check({ service: "krane.v1.Other" });
    await assert.rejects(refused, (error) => error instanceof ConnectError && error.code === Code.NotFound);
  });

  test("a watch reports each change and ends at shutdown", async () => {
    const { health, client } = serve();
    const watched = client.watch({ service: "" })[Symbol.asyncIterator]();
    const next = async () => (await watched.next()).value?.status;
    assert.equal(await next(), Status.NOT_SERVING);
    health.markStarted();
    assert.equal(await next(), Status.SERVING);
    health.markShuttingDown();
    assert.equal(await next(), Status.NOT_SERVING);
    assert.equal((await watched.next()).done, true);
  });

  test("a watch of an unknown service waits, and ends at shutdown or with its caller", async () => {
    const { health, client } = serve();
    const unknown = statusesOf(client.watch({ service: "krane.v1.Other" }));
    const caller = new AbortController();
    const second = client.watch({ service: "" }, { signal: caller.signal })[Symbol.asyncIterator]();
    assert.equal((await second.next()).value?.status, Status.NOT_SERVING);
    caller.abort();
    await assert.rejects(second.next());
    health.markShuttingDown();
    assert.deepEqual(await unknown, [Status.SERVICE_UNKNOWN]);
  });
});
