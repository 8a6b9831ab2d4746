// What a collector sees of a whole server: its calls, each a trace of its own or a part of its caller's.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ClusterService } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { AdminService } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { startOtlpReceiver } from "../../support/otlp-receiver.ts";
import { spansOf } from "../../support/otlp-spans.ts";
import { startServer } from "../../support/running-server.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
const agentToken = "token-of-the-agents";
const adminToken = "ann-may-read-and-write";

async function startTraced(t: TestContext, env: Readonly<Record<string, string>>) {
  const collector = await startOtlpReceiver(t);
  const name = "OTEL_EXPORTER_OTLP_ENDPOINT";
  process.env[name] = collector.url;
  t.after(() => {
    delete process.env[name];
  });
  const dataDir = await mkdtemp(join(tmpdir(), "krane-traced-"));
  t.after(() => rm(dataDir, { recursive: true, force: true, maxRetries: 20 }));
  const flags = {
    "data-dir": dataDir,
    "agent-tokens": `a.test ${agentToken}`,
    "admin-tokens": `ann read-write ${adminToken}`,
    listen: "127.0.0.1:0",
  };
  const server = await startServer(flags, env);
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1" });
  const by = (token: string) => ({ headers: { authorization: `Bearer ${token}`, traceparent } });
  const admins = createClient(AdminService, transport);
  await admins.listAgents({}, by(adminToken));
  await assert.rejects(admins.getObject({}, by(adminToken)), { code: Code.InvalidArgument });
  await assert.rejects(admins.listAgents({}, by("of-nobody-at-all-here")), { code: Code.Unauthenticated });
  const agents = createClient(ClusterService, transport);
  const region = { name: "a", platform: "test" };
  const { headers } = by(agentToken);
  await agents.heartbeat({ region }, { headers: { ...headers, "x-krane-region": "a.test" } });
  await server.stop();
  const sent = collector.received.filter(({ path }) => path === "/v1/traces");
  return sent.flatMap(({ body }) => spansOf(body));
}

test("every call that is let in has a span in the trace of its caller", async (t) => {
  const spans = await startTraced(t, { UNKEY_OTEL_ENABLED: "true", UNKEY_OTEL_TRACE_SAMPLING_RATE: "1" });
  assert.deepEqual(
    spans.map(({ name, failure }) => [name, failure]),
    [
      ["rpc krane.admin.v1.AdminService/ListAgents", undefined],
      ["rpc krane.admin.v1.AdminService/GetObject", "invalid_argument"],
      ["rpc ctrl.v1.ClusterService/Heartbeat", undefined],
    ],
  );
  assert.ok(spans.every((span) => span.traceId === traceId));
});

test("the variables of OpenTelemetry switch traces off", async (t) => {
  const env = { UNKEY_OTEL_ENABLED: "true", UNKEY_OTEL_TRACE_SAMPLING_RATE: "1" };
  assert.deepEqual(await startTraced(t, { ...env, OTEL_TRACES_EXPORTER: "none" }), []);
});
