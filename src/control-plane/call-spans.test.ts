import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { createRecordedSpans, recordedTraceparent } from "../../test/support/recorded-spans.ts";
import { DeadlineError } from "../concurrency/abort.ts";
import { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import { createCallSpans } from "./call-spans.ts";

async function* nothing() {
  yield* [];
}

function createFixture(heartbeat: (header: Headers) => Promise<object>) {
  const { spans, seen } = createRecordedSpans();
  const interceptors = [...createCallSpans(spans, spanCatalogue.controlPlaneCall)];
  const transport = createRouterTransport(
    ({ service }) =>
      void service(ClusterService, {
        heartbeat: (_, { requestHeader }) => heartbeat(requestHeader),
        watchDeployments: nothing,
      }),
    { transport: { interceptors } },
  );
  return { client: createClient(ClusterService, transport), seen };
}

test("a call has a span with its code, and sends the trace context", async () => {
  let sent: string | null = null;
  const { client, seen } = createFixture(async (header) => {
    sent = header.get("traceparent");
    return {};
  });
  await client.heartbeat({});
  assert.equal(sent, recordedTraceparent);
  const attributes = {
    "rpc.service": "ctrl.v1.ClusterService",
    "rpc.method": "Heartbeat",
    "rpc.code": "ok",
  };
  assert.deepEqual(seen, [{ name: "control plane Heartbeat", attributes }]);
});

test("a failure is recorded by its code alone, because a server may quote the request", async () => {
  const { client, seen } = createFixture(async () => {
    throw new ConnectError("no entry with CANARY", Code.PermissionDenied, { "x-echo": "CANARY" });
  });
  await assert.rejects(client.heartbeat({}), /CANARY/);
  assert.equal(seen[0]?.failure, "permission_denied");
  assert.equal(seen[0]?.attributes["rpc.code"], "permission_denied");
  assert.ok(!JSON.stringify(seen).includes("CANARY"));
});

test("a call that timed out is distinguished from one that was aborted", async () => {
  const { client, seen } = createFixture(() => new Promise(() => undefined));
  for (const reason of [new DeadlineError(10), new Error("stopped")]) {
    const ending = new AbortController();
    const call = client.heartbeat({}, { signal: ending.signal });
    ending.abort(reason);
    await assert.rejects(call);
  }
  assert.deepEqual(
    seen.map(({ failure }) => failure),
    ["deadline_exceeded", "canceled"],
  );
});

test("a stream has no span, and without tracing there are no interceptors", async () => {
  const { client, seen } = createFixture(async () => ({}));
  for await (const _ of client.watchDeployments({})) assert.fail("there is nothing to send");
  assert.deepEqual(seen, []);
  assert.deepEqual(createCallSpans(undefined, spanCatalogue.vaultCall), []);
});
