// SchedulerService, the health check and the reflection as a gRPC client of another maker meets them.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { appsDeployments } from "../../../src/kube/resources.ts";
import { eventually } from "../../support/eventually.ts";
import { type GrpcStream, grpcClient } from "./grpc-client.ts";
import {
  createSchedulerWorld,
  deploymentRequest,
  scheduler,
  schedulerToken,
  sentinelRequest,
} from "./scheduler-world.ts";

const never = new AbortController().signal;
const hasCode = (code: status) => (error: unknown) =>
  error instanceof Error && "code" in error && error.code === code;

/** Reads on until a message has all of this. */
async function until(stream: GrpcStream, wanted: object): Promise<void> {
  for (;;) {
    const message = await stream.next();
    if (message === "end") assert.fail(`the stream ended without ${JSON.stringify(wanted)}`);
    if (hasAll(message, wanted)) return;
  }
}

/** Lists have to be of the same length. */
function hasAll(value: unknown, wanted: unknown): boolean {
  if (typeof wanted !== "object" || wanted === null) return value === wanted;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(wanted) && (!Array.isArray(value) || value.length !== wanted.length)) return false;
  const members = value as Readonly<Record<string, unknown>>;
  return Object.entries(wanted).every(([name, member]) => hasAll(members[name], member));
}

describe("SchedulerService by gRPC", () => {
  test("applies, shows and deletes deployments and sentinels", async (t) => {
    const { agent, cluster, replicaSetNames } = await createSchedulerWorld(t);
    const client = grpcClient(t, agent.url, schedulerToken);
    assert.deepEqual(await client.call(scheduler, "ApplyDeployment", deploymentRequest), {});
    assert.deepEqual(await replicaSetNames(), ["web"]);
    const watch = client.stream(scheduler, "Watch", [{}]);
    const web = { deployment_k8s_name: "web", readiness_id: "rd_1" };
    await until(watch, { deployment: { ...web, instances: [{ status: "STATUS_RUNNING" }] } });
    assert.deepEqual(await client.call(scheduler, "ApplySentinel", sentinelRequest), {});
    await until(watch, { sentinel: { k8s_name: "gate" } });
    await client.call(scheduler, "DeleteSentinel", { k8s_namespace: "sentinel", k8s_name: "gate" });
    await until(watch, { sentinel: { k8s_name: "gate", available_replicas: 0 } });
    await client.call(scheduler, "DeleteDeployment", { k8s_namespace: "acme", k8s_name: "web" });
    await until(watch, { deployment: { ...web, instances: [] } });
    assert.deepEqual(await replicaSetNames(), []);
    assert.deepEqual((await cluster.api.list(appsDeployments, {}, never)).items, []);
    await agent.stop();
    await assert.rejects(
      until(watch, { deployment: { deployment_k8s_name: "none" } }),
      hasCode(status.UNAVAILABLE),
    );
  });

  test("names what is wrong with an order", async (t) => {
    const { agent, replicaSetNames } = await createSchedulerWorld(t);
    const client = grpcClient(t, agent.url, schedulerToken);
    for (const [method, request, message] of [
      ["ApplyDeployment", { ...deploymentRequest, image: "" }, /image/],
      ["ApplyDeployment", { ...deploymentRequest, k8s_namespace: "kube-system" }, /k8s_namespace/],
      ["ApplyDeployment", { ...deploymentRequest, readiness_id: "x".repeat(257) }, /readiness_id/],
      ["DeleteDeployment", { k8s_namespace: "acme", k8s_name: "../web" }, /k8s_name/],
      ["ApplySentinel", { ...sentinelRequest, k8s_namespace: "acme" }, /k8s_namespace must be "sentinel"/],
      ["DeleteSentinel", { k8s_namespace: "acme", k8s_name: "gate" }, /k8s_namespace must be "sentinel"/],
    ] as const) {
      const refused = client.call(scheduler, method, request);
      await assert.rejects(refused, hasCode(status.INVALID_ARGUMENT), method);
      await assert.rejects(refused, message);
    }
    const scrape = client.call(scheduler, "ScrapeOpenApiSchema", {
      namespace: "acme",
      name: "web",
      path: "/",
    });
    await assert.rejects(scrape, hasCode(status.FAILED_PRECONDITION));
    await assert.rejects(scrape, /scheduler\.scrape/);
    assert.deepEqual(await replicaSetNames(), []);
  });

  test("leaves alone what is not its own", async (t) => {
    const { agent } = await createSchedulerWorld(t);
    const client = grpcClient(t, agent.url, schedulerToken);
    await client.call(scheduler, "ApplyDeployment", deploymentRequest);
    const other = client.call(scheduler, "ApplyDeployment", { ...deploymentRequest, deployment_id: "d_2" });
    await assert.rejects(other, hasCode(status.ALREADY_EXISTS));
  });

  test("waits no longer than the caller, and keeps the order", async (t) => {
    const { agent, cluster, links, replicaSetNames } = await createSchedulerWorld(t);
    const client = grpcClient(t, agent.url, schedulerToken);
    const release = cluster.server.faults.intercept(({ path, method }) =>
      method === "PATCH" && path.includes("/replicasets/") ? "hang" : undefined,
    );
    const deadline = Date.now() + 500;
    const late = client.call(scheduler, "ApplyDeployment", deploymentRequest, { deadline });
    await assert.rejects(late, hasCode(status.DEADLINE_EXCEEDED));
    release();
    links.cluster.cut();
    await eventually("the order is applied", async () => assert.deepEqual(await replicaSetNames(), ["web"]));
  });

  test("rejects calls without its token, and is not served if none is configured", async (t) => {
    const { agent, startAgent } = await createSchedulerWorld(t);
    for (const bearer of [undefined, "wrong", "kat_of_the_test"]) {
      const stranger = grpcClient(t, agent.url, bearer);
      for (const method of [
        "ApplyDeployment",
        "DeleteDeployment",
        "ApplySentinel",
        "DeleteSentinel",
        "ScrapeOpenApiSchema",
      ])
        await assert.rejects(stranger.call(scheduler, method, {}), hasCode(status.UNAUTHENTICATED));
      await assert.rejects(stranger.stream(scheduler, "Watch", [{}]).next(), hasCode(status.UNAUTHENTICATED));
    }
    const { url } = await startAgent();
    const client = grpcClient(t, url, schedulerToken);
    await assert.rejects(client.call(scheduler, "ApplyDeployment", {}), hasCode(status.UNIMPLEMENTED));
  });
});

describe("grpc.health.v1 by gRPC", () => {
  test("answers a probe without a token, and tells a watch when krane stops", async (t) => {
    const { agent } = await createSchedulerWorld(t);
    const client = grpcClient(t, agent.url);
    const health = "grpc.health.v1.Health";
    for (const service of ["", scheduler, "krane.v1.AgentService"])
      assert.deepEqual(await client.call(health, "Check", { service }), { status: "SERVING" });
    const unknown = client.call(health, "Check", { service: "krane.v1.SecretsService" });
    await assert.rejects(unknown, hasCode(status.NOT_FOUND));
    const watch = client.stream(health, "Watch", [{ service: scheduler }]);
    assert.deepEqual(await watch.next(), { status: "SERVING" });
    const stopped = agent.stop();
    assert.deepEqual(await watch.next(), { status: "NOT_SERVING" });
    assert.equal(await watch.next(), "end");
    await stopped;
  });
});

describe("server reflection by gRPC", () => {
  for (const version of ["v1", "v1alpha"])
    test(`${version} tells every service and its file, without a token`, async (t) => {
      const { agent } = await createSchedulerWorld(t);
      const client = grpcClient(t, agent.url);
      const stream = client.stream(`grpc.reflection.${version}.ServerReflection`, "ServerReflectionInfo", [
        { host: "h", list_services: "*" },
        { file_containing_symbol: scheduler },
        { file_containing_extension: { containing_type: scheduler, extension_number: 1 } },
      ]);
      const services = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "krane.v1.AgentService",
        scheduler,
      ];
      const list = (await stream.next()) as { list_services_response?: { service: { name: string }[] } };
      assert.deepEqual(list.list_services_response?.service.map(({ name }) => name).sort(), services.sort());
      const file = (await stream.next()) as {
        file_descriptor_response?: { file_descriptor_proto: Buffer[] };
      };
      const [bytes] = file.file_descriptor_response?.file_descriptor_proto ?? [];
      assert.ok(bytes?.includes("krane/v1/scheduler.proto"));
      await until(stream, {
        original_request: { file_containing_extension: { extension_number: 1 } },
        error_response: { error_code: status.NOT_FOUND },
      });
      assert.equal(await stream.next(), "end");
    });
});
