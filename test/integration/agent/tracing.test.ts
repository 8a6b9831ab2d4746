// What a collector sees of a whole agent: the traces of what it does, as they nest.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pods } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { startOtlpReceiver } from "../../support/otlp-receiver.ts";
import { spansOf } from "../../support/otlp-spans.ts";
import { agentClient, createAgentWorld, region } from "./agent-world.ts";

const never = new AbortController().signal;
const caller = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const headers = { traceparent: `00-${caller.traceId}-${caller.spanId}-01` };

/** An agent that traces, and the spans that it has sent by the time that it has stopped. */
async function startTracedAgent(t: TestContext, sampleRate: string) {
  const collector = await startOtlpReceiver(t);
  const name = "OTEL_EXPORTER_OTLP_ENDPOINT";
  const before = process.env[name];
  process.env[name] = collector.url;
  t.after(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
  const world = await createAgentWorld(t);
  const agent = await world.startAgent(`[observability.tracing]\nsample_rate = ${sampleRate}`);
  return {
    ...world,
    client: agentClient(t, agent.url),
    stranger: agentClient(t, agent.url, { bearer: "kat_of_nobody" }),
    collector,
    async spans() {
      await agent.stop();
      const sent = collector.received.filter(({ path }) => path === "/v1/traces");
      return sent.flatMap(({ body }) => spansOf(body));
    },
  };
}

async function deploy({ admin, cluster }: Awaited<ReturnType<typeof startTracedAgent>>) {
  await admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
  await eventually("it runs", async () => {
    const { items } = await cluster.api.list(pods, { namespace: "acme" }, never);
    assert.ok(items.length > 0, "not yet");
    assert.equal((await admin.instances(region, "d_1")).length, items.length);
  });
}

test("a deployment is a trace: the reconcile at its root, and each request to Kubernetes a child of it", async (t) => {
  const agent = await startTracedAgent(t, "1.0");
  await deploy(agent);
  const spans = await agent.spans();
  const written = spans.find(
    ({ name, attributes }) => name === "kubernetes patch replicasets" && attributes["k8s.name"] === "web",
  );
  assert.ok(written, spans.map(({ name }) => name).join());
  assert.deepEqual(written.attributes, {
    "k8s.verb": "patch",
    "k8s.resource": "replicasets",
    "k8s.namespace": "acme",
    "k8s.name": "web",
    "http.response.status_code": "201",
  });
  const root = spans.find(({ spanId }) => spanId === written.parentId);
  assert.equal(root?.name, "reconcile deployments");
  assert.equal(root.parentId, "");
  assert.equal(root.traceId, written.traceId);
  assert.equal(root.failure, undefined);
  const { "krane.version": version, ...attributes } = root.attributes;
  assert.match(version ?? "", /^[1-9]\d*$/);
  assert.deepEqual(attributes, {
    "krane.controller": "deployments",
    "krane.key": "acme/web",
    "krane.outcome": "applied",
  });

  // Every span of a trace is a child of its root, and every other trace is a call of its own.
  const reconciles = new Map(
    spans.filter(({ name }) => name.startsWith("reconcile ")).map((span) => [span.spanId, span]),
  );
  for (const { name, parentId, traceId } of spans) {
    if (parentId === "") continue;
    assert.match(name, /^kubernetes /);
    assert.equal(reconciles.get(parentId)?.traceId, traceId);
  }
  const report = spans.find(({ name }) => name === "control plane ReportDeploymentStatus");
  assert.deepEqual(
    [report?.parentId, report?.attributes["rpc.code"], report?.failure],
    ["", "ok", undefined],
  );
});

test("a refusal is on the span of the request and on that of its reconcile", async (t) => {
  const agent = await startTracedAgent(t, "1.0");
  const { admin, client, cluster } = agent;
  cluster.server.faults.intercept(({ method, path }) => {
    if (method !== "PATCH" || !path.endsWith("/replicasets/web")) return undefined;
    const body = { kind: "Status", status: "Failure", code: 422, message: "a webhook says CANARY" };
    return { kind: "whole", status: 422, body };
  });
  await admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
  await eventually("it is refused", async () => {
    const { objects } = await client.listObjects({ onlyTroubled: true });
    assert.equal(objects.length, 1);
  });
  const spans = await agent.spans();
  const refused = spans.filter(({ failure }) => failure === "422");
  assert.ok(refused.length > 0);
  for (const { name, parentId } of refused) {
    assert.equal(name, "kubernetes patch replicasets");
    const root = spans.find(({ spanId }) => spanId === parentId);
    assert.deepEqual([root?.failure, root?.attributes["krane.outcome"]], ["parked", "parked"]);
  }
  const bodies = agent.collector.received.map(({ body }) => body.toString("latin1")).join();
  assert.ok(!bodies.includes("CANARY"));
});

test("a call of somebody with a token continues their trace, and one without is no trace at all", async (t) => {
  const agent = await startTracedAgent(t, "1.0");
  await agent.client.getStatus({}, { headers });
  await assert.rejects(agent.stranger.getStatus({}, { headers }));
  const spans = await agent.spans();
  const served = spans.filter(({ name }) => name.startsWith("rpc "));
  assert.deepEqual(
    served.map(({ name, traceId, parentId, attributes }) => [
      name,
      traceId,
      parentId,
      attributes["rpc.code"],
    ]),
    [["rpc krane.v1.AgentService/GetStatus", caller.traceId, caller.spanId, "ok"]],
  );
});

test("with a sample rate of 0 no span is sent, not even for a caller whose trace is kept", async (t) => {
  const agent = await startTracedAgent(t, "0.0");
  await deploy(agent);
  await agent.client.getStatus({}, { headers });
  assert.deepEqual(await agent.spans(), []);
  // Metrics were, so there was somebody to send to.
  assert.ok(agent.collector.received.length > 0);
});
