// Writes that may be sent only while a condition holds, on real sockets: what is not permitted never arrives, and what was
// given up is reset, so that the kernel does not deliver it later.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type { ServerOptions } from "node:https";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { KubeApiError } from "../../../src/kube/errors.ts";
import type { KubeRequest, SendPermit } from "../../../src/kube/transport.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, connectTo, startStubApiServer } from "../../support/stub-api-server.ts";

const signal = new AbortController().signal;

function write(permit: SendPermit): KubeRequest {
  return { method: "POST", path: "/api/v1/namespaces/a/pods", body: { kind: "Pod" }, permit };
}

test("the permit is checked when the request leaves, not when it was built", async (t) => {
  const held: ServerResponse[] = [];
  const server = await startStubApiServer(t, (_, response) => void held.push(response));
  const { transport } = connectTo(t, server, { connections: 1 });
  const first = transport.send({ method: "GET", path: "/api/v1/pods" }, signal);
  await eventually("the only connection is busy", () => assert.equal(held.length, 1));
  let isPermitted = true;
  const check = () => {
    if (!isPermitted) throw new KubeApiError("no-lease", "too late");
  };
  const waiting = transport.send(write({ check, timeoutMs: 5_000 }), signal);
  isPermitted = false;
  const [response] = held;
  assert.ok(response);
  answerJson(response, 200, {});
  await first;
  await assert.rejects(waiting, (error: KubeApiError) => error.code === "no-lease");
  assert.deepEqual(
    server.requests.map(({ method }) => method),
    ["GET"],
  );
  // The connection is still usable.
  isPermitted = true;
  const next = transport.send(write({ check, timeoutMs: 5_000 }), signal);
  await eventually("the next one arrives", () => assert.equal(held.length, 2));
  if (held[1]) answerJson(held[1], 201, {});
  assert.equal((await next).status, 201);
});

async function expectReset(t: TestContext, tls?: ServerOptions): Promise<void> {
  const errors: (string | undefined)[] = [];
  const server = await startStubApiServer(
    t,
    (request) => {
      request.socket.on("error", (error: NodeJS.ErrnoException) => errors.push(error.code));
    },
    tls,
  );
  const { transport } = connectTo(t, server, { endpoint: { insecureSkipTlsVerify: true } });
  const sent = transport.send(write({ check: () => undefined, timeoutMs: 200 }), signal);
  await assert.rejects(sent, (error: KubeApiError) => error.code === "timeout");
  await eventually("the server sees a reset, not an end", () => assert.deepEqual(errors, ["ECONNRESET"]));
}

test("a write that takes too long is reset", (t) => expectReset(t));

async function certificate(): Promise<ServerOptions> {
  const read = (file: string) =>
    readFile(fileURLToPath(new URL(`../../../testdata/tls/${file}`, import.meta.url)), "utf8");
  return { cert: await read("first.cert.pem"), key: await read("first.key.pem") };
}

test("a write that takes too long is reset, over TLS too", async (t) => expectReset(t, await certificate()));

test("writes that may no longer be sent cost no connection over TLS, and do not crash Node", async (t) => {
  const server = await startStubApiServer(
    t,
    (_, response) => answerJson(response, 200, {}),
    await certificate(),
  );
  const { transport } = connectTo(t, server, { connections: 8, endpoint: { insecureSkipTlsVerify: true } });
  const late = () => {
    throw new KubeApiError("no-lease", "too late");
  };
  // The first ones are checked while the TLS handshake of their connection ends. Their connection used to be destroyed
  // there, which Node does not survive.
  const codes = await Promise.all(
    Array.from({ length: 100 }, (_, index) => {
      const check = index % 3 === 0 ? late : () => undefined;
      return transport.send(write({ check, timeoutMs: 20_000 }), signal).then(
        () => "sent",
        ({ code }: KubeApiError) => code,
      );
    }),
  );
  assert.deepEqual(
    codes.map((code, index) => [index, code]),
    codes.map((_, index) => [index, index % 3 === 0 ? "no-lease" : "sent"]),
  );
  assert.equal(server.opened(), 8);
});

test("a client that is closed in the middle of many writes over TLS ends well", async (t) => {
  const server = await startStubApiServer(
    t,
    (_, response) => answerJson(response, 200, {}),
    await certificate(),
  );
  // Node used to crash when both layers of a connection were destroyed at once.
  for (let round = 0; round < 25; round++) {
    const { transport } = connectTo(t, server, { connections: 8, endpoint: { insecureSkipTlsVerify: true } });
    const stopping = new AbortController();
    const permit = { check: () => undefined, timeoutMs: 5_000 };
    const sent = Array.from({ length: 24 }, () =>
      transport.send({ ...write(permit), body: { kind: "Pod", note: "x".repeat(8_000) } }, stopping.signal),
    );
    await Promise.race(sent);
    if (round % 2 === 0) stopping.abort();
    await transport.close();
    await Promise.allSettled(sent);
  }
});
