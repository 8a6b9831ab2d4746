import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "@krane/kube-apiserver";
import { createSeededRandom, FakeClock } from "@krane/kube-apiserver/testing";
import { KubeApiError } from "../kube/errors.ts";
import { createInProcessTransport } from "./in-process-transport.ts";

const path = "/api/v1/namespaces/default/configmaps";
const never = new AbortController().signal;

function start() {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(7) });
  return { clock, server, transport: createInProcessTransport(server) };
}

test("closing the transport ends its watches and rejects later requests", async () => {
  const { clock, server, transport } = start();
  const watch = await transport.stream({ method: "GET", path, query: { watch: "1" } }, never);
  await transport.close();
  const isClosed = (error: unknown) => error instanceof KubeApiError && error.code === "network";
  await assert.rejects(async () => {
    for await (const _event of watch.values) assert.fail("no events were expected");
  }, isClosed);
  await assert.rejects(transport.send({ method: "GET", path }, never), isClosed);
  assert.equal(server.faults.openWatches, 0);
  assert.equal(clock.timerCount, 0);
});

test("a refused watch has its answer and no events", async () => {
  const { transport } = start();
  const query = { watch: "1", labelSelector: "a=b=c" };
  const { status, refusal, values } = await transport.stream({ method: "GET", path, query }, never);
  assert.equal(status, 400);
  assert.equal(refusal?.status, 400);
  for await (const _event of values) assert.fail("no events were expected");
});

test("an answer keeps its status, body and Retry-After", async () => {
  const { server, transport } = start();
  server.faults.intercept(() => ({ kind: "whole", status: 503, body: "later", retryAfterSeconds: 3 }));
  const answer = await transport.send({ method: "GET", path }, never);
  assert.deepEqual(answer, { status: 503, body: "later", retryAfterSeconds: 3 });
});

test("a watch asked for as one answer is malformed, and closed", async () => {
  const { server, transport } = start();
  const asked = transport.send({ method: "GET", path, query: { watch: "1" } }, never);
  await assert.rejects(asked, (error) => error instanceof KubeApiError && error.code === "malformed");
  assert.equal(server.faults.openWatches, 0);
});
