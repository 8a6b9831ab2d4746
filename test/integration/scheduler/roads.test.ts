// Every method by every protocol that the port speaks, with clients of one maker.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import {
  ApplyDeploymentRequestSchema,
  ApplySentinelRequestSchema,
  SchedulerService,
} from "../../../src/gen/krane/v1/scheduler_pb.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
import { createSchedulerWorld, schedulerToken } from "./scheduler-world.ts";

const roads = [
  "Connect, h2c",
  "Connect, HTTP/1.1",
  "gRPC, h2c",
  "gRPC-Web, HTTP/1.1",
  "gRPC-Web, h2c",
] as const;

function clientBy(t: TestContext, road: (typeof roads)[number], baseUrl: string) {
  const send: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${schedulerToken}`);
    return next(request);
  };
  const options = { baseUrl, interceptors: [send] };
  if (road.endsWith("HTTP/1.1")) {
    const createTransport = road.startsWith("Connect") ? createConnectTransport : createGrpcWebTransport;
    return createClient(SchedulerService, createTransport({ ...options, httpVersion: "1.1" }));
  }
  const sessionManager = new Http2SessionManager(baseUrl);
  t.after(() => sessionManager.abort());
  const createTransport = {
    Connect: createConnectTransport,
    gRPC: createGrpcTransport,
    "gRPC-Web": createGrpcWebTransport,
  }[road.split(",")[0] as "Connect" | "gRPC" | "gRPC-Web"];
  return createClient(SchedulerService, createTransport({ ...options, httpVersion: "2", sessionManager }));
}

describe("SchedulerService", () => {
  test("does the same by every road", async (t) => {
    const { agent, replicaSetNames } = await createSchedulerWorld(t);
    for (const road of roads) {
      const client = clientBy(t, road, agent.url);
      const { $typeName: _, command: __, port: ___, shutdownSignal: ____, ...fields } = applyDeployment();
      await client.applyDeployment(create(ApplyDeploymentRequestSchema, { ...fields, readinessId: road }));
      const { $typeName: _____, ...sentinel } = applySentinel();
      await client.applySentinel(
        create(ApplySentinelRequestSchema, { ...sentinel, k8sNamespace: "sentinel" }),
      );
      assert.deepEqual(await replicaSetNames(), ["web"], road);
      const seen = new Map<string | undefined, unknown>();
      for await (const { state } of client.watch({})) {
        seen.set(state.case, state.case === "deployment" ? state.value.readinessId : state.value?.k8sName);
        if (seen.size === 2 && seen.get("deployment") === road) break;
      }
      assert.deepEqual(Object.fromEntries(seen), { deployment: road, sentinel: "gate" });
      const scrape = client.scrapeOpenApiSchema({ namespace: "acme", name: "web", path: "/openapi.json" });
      await assert.rejects(
        scrape,
        (error) => error instanceof ConnectError && error.code === Code.FailedPrecondition,
      );
      await client.deleteSentinel({ k8sNamespace: "sentinel", k8sName: "gate" });
      await client.deleteDeployment({ k8sNamespace: "acme", k8sName: "web" });
      assert.deepEqual(await replicaSetNames(), [], road);
    }
  });
});
