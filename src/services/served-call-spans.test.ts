import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createRecordedSpans, recordedTraceparent } from "../../test/support/recorded-spans.ts";
import { VaultService } from "../gen/vault/v1/service_pb.ts";
import { createErrorInterceptor } from "./rpc-errors.ts";
import { tracedRouter } from "./served-call-spans.ts";

const headers = { traceparent: recordedTraceparent };

function createFixture() {
  const { spans, seen } = createRecordedSpans();
  const explain = () => new ConnectError("not this one", Code.NotFound);
  const interceptors = [createErrorInterceptor({ log: createQuietLog(), explain })];
  const transport = createRouterTransport((router) => {
    const traced = tracedRouter(router, spans, (method) => method === VaultService.method.encrypt);
    traced.service(
      VaultService,
      {
        liveness: () => ({ status: "ok" }),
        encrypt: () => ({ encrypted: "x", keyId: "k" }),
        decrypt: () => assert.fail("a bug that names a secret"),
      },
      { interceptors },
    );
  });
  return { client: createClient(VaultService, transport), seen };
}

test("a call has a span, which continues the trace of authenticated callers only", async () => {
  const { client, seen } = createFixture();
  await client.encrypt({}, { headers });
  await client.encrypt({});
  await client.liveness({}, { headers });
  assert.deepEqual(
    seen.map(({ name, continues }) => [name, continues]),
    [
      ["rpc vault.v1.VaultService/Encrypt", recordedTraceparent],
      ["rpc vault.v1.VaultService/Encrypt", undefined],
      ["rpc vault.v1.VaultService/Liveness", undefined],
    ],
  );
  assert.deepEqual(seen[0]?.attributes, {
    "rpc.service": "vault.v1.VaultService",
    "rpc.method": "Encrypt",
    "rpc.code": "ok",
  });
});

test("a failure is recorded with the code that the client gets", async () => {
  const { client, seen } = createFixture();
  await assert.rejects(client.decrypt({}), { code: Code.NotFound });
  assert.deepEqual([seen[0]?.failure, seen[0]?.attributes["rpc.code"]], ["not_found", "not_found"]);
  assert.ok(!JSON.stringify(seen).includes("secret"));
});

test("without tracing the router is returned unchanged", () => {
  createRouterTransport((router) => {
    assert.equal(
      tracedRouter(router, undefined, () => true),
      router,
    );
  });
});
