import assert from "node:assert/strict";
import { test } from "node:test";
import { KubeApiError } from "./errors.ts";
import { fencedTransport } from "./fenced-transport.ts";
import type { KubeRequest, KubeTransport } from "./transport.ts";

const never = new AbortController().signal;
const write: KubeRequest = {
  method: "PATCH",
  path: "/api/v1/namespaces/a/secrets/b",
  query: { force: "true" },
};

function setUp(leftMs: number, beforeSend: () => void = () => undefined) {
  const sent: KubeRequest[] = [];
  const fence = {
    left: leftMs,
    unknownMs: [] as number[],
    leftMs: () => fence.left,
    onUnknown: (forMs: number) => void fence.unknownMs.push(forMs),
  };
  const transport: KubeTransport = {
    async send(request) {
      beforeSend.call(undefined);
      request.permit?.check();
      sent.push(request);
      return { status: 200, body: {} };
    },
    stream: () => Promise.reject(new Error("no streams here")),
    close: () => Promise.resolve(),
  };
  return { sent, fence, fenced: fencedTransport(transport, fence) };
}

const isRefusal = (error: unknown) => error instanceof KubeApiError && error.code === "no-lease";

test("a write gets less than half of the time that is left, on both sides", async () => {
  const { sent, fenced } = setUp(14_000);
  await fenced.send(write, never);
  assert.deepEqual(sent[0]?.query, { force: "true", timeout: "6500ms" });
  assert.equal(sent[0]?.permit?.timeoutMs, 6_500);
});

test("without a lease, no write is sent, but reads and reviews are", async () => {
  const { sent, fenced } = setUp(0);
  for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const)
    await assert.rejects(fenced.send({ ...write, method }, never), isRefusal);
  await assert.rejects(
    fenced.send({ method: "POST", path: "/api/v1/namespaces/a/pods/b/eviction" }, never),
    isRefusal,
  );
  assert.equal(sent.length, 0);
  await fenced.send({ method: "GET", path: "/api/v1/pods" }, never);
  await fenced.send({ method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews" }, never);
  await fenced.send(
    { method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" },
    never,
  );
  assert.equal(sent.length, 3);
  assert.ok(sent.every(({ permit, query }) => permit === undefined && query === undefined));
});

test("a lease that is nearly over allows no write", async () => {
  const { sent, fenced } = setUp(4_900);
  await assert.rejects(fenced.send(write, never), isRefusal);
  assert.equal(sent.length, 0);
});

test("a write that waited until its lease was nearly over is not sent", async () => {
  const { sent, fenced, fence } = setUp(14_000, () => {
    fence.left = 12_000;
  });
  await assert.rejects(fenced.send(write, never), isRefusal);
  assert.equal(sent.length, 0);
  assert.deepEqual(fence.unknownMs, []);
});

test("a process that is alone sends writes as they are", async () => {
  const { sent, fenced } = setUp(Number.POSITIVE_INFINITY);
  await fenced.send(write, never);
  assert.deepEqual(sent, [write]);
});

test("a write without a response may still take effect, until the server's timeout is over", async () => {
  const { fenced, fence } = setUp(14_000, () => {
    throw new KubeApiError("network", "broken");
  });
  await assert.rejects(fenced.send(write, never), /broken/);
  assert.deepEqual(fence.unknownMs, [6_500]);
});
