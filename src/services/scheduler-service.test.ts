import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
} from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { Secret } from "../config/secret.ts";
import type { OrderOutcome } from "../engine/running-controller.ts";
import { ReportDeploymentStatusRequest_UpdateSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import { SchedulerService } from "../gen/krane/v1/scheduler_pb.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { DocumentAddress, FetchDocument } from "./document-fetch.ts";
import { type SchedulerTarget, schedulerServiceRoutes } from "./scheduler-service.ts";

const token = new Secret("of-the-test");

/** One deployment, acme/web, with one running instance; every order is recorded and applied. */
function createTarget() {
  const orders: unknown[] = [];
  const stopping = new AbortController();
  const listeners = new Set<(key: string) => void>();
  const seen = <T>(key: string, value: T | undefined) => ({
    keys: () => (value === undefined ? [] : [key]),
    get: (asked: string) => (asked === key ? value : undefined),
    subscribe(listener: (key: string) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ending: stopping.signal,
  });
  const take = async (order: unknown, _: AbortSignal, readinessId?: string): Promise<OrderOutcome> => {
    orders.push(readinessId === undefined ? order : { message: order, readinessId });
    return { outcome: "applied", reason: "", fieldPath: undefined };
  };
  const web = {
    update: create(ReportDeploymentStatusRequest_UpdateSchema, { k8sName: "web" }),
    fingerprint: "",
    counts: { wanted: 1, total: 1, ready: 1, failed: 0, ofOlderTemplate: 0 },
    sockets: [{ ip: "10.0.0.7", port: 3000 }],
  };
  const target: SchedulerTarget = {
    deployments: { apply: take, delete: take, seen: seen("acme/web", web) },
    sentinels: { apply: take, delete: take, seen: seen("sentinel/gate", undefined) },
  };
  return { target, orders, listeners };
}

function serve(target: SchedulerTarget | undefined, fetchDocument?: FetchDocument) {
  const send: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token.reveal()}`);
    return next(request);
  };
  const routes = schedulerServiceRoutes(
    { current: async () => token, refresh: () => undefined },
    {
      clock: new FakeClock(),
      log: createQuietLog(),
      metrics: createMetrics({ version: "0", revision: "r", nodeVersion: "v0" }),
      target: () => target,
      fetchDocument,
    },
  );
  return createClient(
    SchedulerService,
    createRouterTransport(routes, { transport: { interceptors: [send] } }),
  );
}

const refusedWith = (code: Code) => (error: unknown) => error instanceof ConnectError && error.code === code;

describe("SchedulerService", () => {
  test("passes every field of an order on, and the caller's readiness id with it", async () => {
    const { target, orders } = createTarget();
    const client = serve(target);
    const fields = {
      workspaceId: "ws",
      projectId: "p",
      environmentId: "e",
      image: "i",
      replicas: 2,
      cpuMillicores: 3n,
      memoryMib: 4n,
    };
    const deployment = {
      ...fields,
      k8sNamespace: "acme",
      k8sName: "web",
      deploymentId: "d",
      buildId: "b",
      encryptedEnvironmentVariables: new Uint8Array([1]),
      pullSecret: "krane-registry-acme",
      env: { LOG_LEVEL: "info" },
    };
    const sentinel = { ...fields, k8sName: "gate", sentinelId: "s" };
    await client.applyDeployment({ ...deployment, readinessId: "r" });
    await client.applySentinel({ ...sentinel, k8sNamespace: "sentinel" });
    await client.deleteDeployment({ k8sNamespace: "acme", k8sName: "web" });
    await client.deleteSentinel({ k8sNamespace: "sentinel", k8sName: "gate" });
    const $typeName = (name: string) => ({ $typeName: `ctrl.v1.${name}` });
    const rest = { command: [], port: 0, shutdownSignal: "" };
    assert.deepEqual(JSON.parse(JSON.stringify(orders, numbers)), [
      {
        message: { ...$typeName("ApplyDeployment"), ...plain(deployment), ...plain(rest) },
        readinessId: "r",
      },
      { ...$typeName("ApplySentinel"), ...plain(sentinel) },
      { ...$typeName("DeleteDeployment"), k8sNamespace: "acme", k8sName: "web" },
      { ...$typeName("DeleteSentinel"), k8sName: "gate" },
    ]);
  });

  test("accepts nothing before krane has started", async () => {
    const client = serve(undefined, async () => assert.fail("nobody is asked"));
    const unavailable = refusedWith(Code.Unavailable);
    await assert.rejects(client.applyDeployment({}), unavailable);
    await assert.rejects(client.deleteDeployment({}), unavailable);
    await assert.rejects(client.applySentinel({ k8sNamespace: "sentinel" }), unavailable);
    await assert.rejects(client.deleteSentinel({ k8sNamespace: "sentinel" }), unavailable);
    await assert.rejects(client.watch({})[Symbol.asyncIterator]().next(), unavailable);
    await assert.rejects(client.scrapeOpenApiSchema({ path: "/" }), unavailable);
  });

  test("fetches a document from an instance only when scraping is on", async () => {
    const { target } = createTarget();
    const asked: DocumentAddress[] = [];
    const question = { namespace: "acme", name: "web", path: "/openapi.json" };
    await assert.rejects(serve(target).scrapeOpenApiSchema(question), refusedWith(Code.FailedPrecondition));
    const client = serve(target, async (address) => {
      asked.push(address);
      return { kind: "document", text: '{"openapi":"3.1.0"}' };
    });
    assert.equal((await client.scrapeOpenApiSchema(question)).spec, '{"openapi":"3.1.0"}');
    assert.deepEqual(asked, [{ ip: "10.0.0.7", port: 3000, path: "/openapi.json" }]);
    const unknown = client.scrapeOpenApiSchema({ ...question, name: "other" });
    await assert.rejects(unknown, refusedWith(Code.NotFound));
  });

  test("limits the watching clients, and a client that leaves makes room for another", async () => {
    const { target, listeners } = createTarget();
    const client = serve(target);
    const callers = Array.from({ length: 32 }, () => new AbortController());
    const open = async (signal?: AbortSignal) => {
      const states = client.watch({}, signal === undefined ? {} : { signal })[Symbol.asyncIterator]();
      return (await states.next()).value?.state.case;
    };
    for (const { signal } of callers) assert.equal(await open(signal), "deployment");
    await assert.rejects(open(), refusedWith(Code.ResourceExhausted));
    for (const caller of callers) caller.abort();
    while (listeners.size > 0) await new Promise((resolve) => setImmediate(resolve));
    const last = new AbortController();
    assert.equal(await open(last.signal), "deployment");
    last.abort();
  });
});

function numbers(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}

function plain(fields: object): object {
  return JSON.parse(JSON.stringify(fields, numbers));
}
