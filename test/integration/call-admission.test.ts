// What a port does with calls before it reads their bodies, as real clients of every protocol see it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import { connect, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { SchedulerService } from "../../src/gen/krane/v1/scheduler_pb.ts";
import { VaultService } from "../../src/gen/vault/v1/service_pb.ts";
import { routeByPath } from "../../src/http/http-handler.ts";
import { startHttpPort } from "../../src/http/http-port.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { rpcRoutes } from "../../src/services/rpc-routes.ts";
import { schedulerServiceRoutes } from "../../src/services/scheduler-service.ts";
import { vaultServiceRoutes } from "../../src/services/vault-service.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { generateMasterKey } from "../../src/vault/master-keys.ts";
import { createMemoryStorage } from "../../src/vault/storage/memory-storage.ts";
import { eventually } from "../support/eventually.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { serveSecrets } from "../support/served-secrets.ts";
import { createTestVault, secretOf } from "../support/vault-fixture.ts";

const { signal } = new AbortController();
const token = "the-token";
const encryptPath = "/vault.v1.VaultService/Encrypt";
const largest = 8 * 1024 * 1024;

async function serve(t: TestContext, accepts = secretOf(token)) {
  const deps = {
    clock: createSystemClock(),
    log: createQuietLog(),
    readTextFile: () => assert.fail("no TLS"),
  };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const vault = createTestVault({ storage: createMemoryStorage(), keys: [generateMasterKey(0)] });
  const routes = rpcRoutes((router) => {
    vaultServiceRoutes(vault, accepts, { ...deps, metrics })(router);
    schedulerServiceRoutes(secretOf(token), { ...deps, metrics, target: () => undefined })(router);
  });
  const where = { port: 0, setting: "rpc_port" };
  const port = await startHttpPort(routeByPath(routes), where, deps, signal);
  t.after(() => port.stop(AbortSignal.abort()));
  return { url: `http://127.0.0.1:${port.port}`, port: port.port, metrics };
}

interface Http1Client {
  readonly socket: Socket;
  /** The next answer that the connection brings. */
  answer(): Promise<{ readonly head: string; readonly body: string }>;
}

async function openHttp1(t: TestContext, port: number, localAddress = "127.0.0.1"): Promise<Http1Client> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk;
    socket.emit("received");
  });
  return {
    socket,
    async answer() {
      for (;;) {
        const [, head = "", length = "0"] =
          /^(HTTP\/1\.1 [\s\S]*?content-length: (\d+)[\s\S]*?\r\n\r\n)/i.exec(received) ?? [];
        if (head !== "" && received.length >= head.length + Number(length)) {
          const body = received.slice(head.length, head.length + Number(length));
          received = received.slice(head.length + Number(length));
          return { head, body };
        }
        assert.ok(!socket.destroyed, `the connection ended after ${JSON.stringify(received)}`);
        await Promise.race([once(socket, "received"), once(socket, "close")]);
      }
    },
  };
}

function head(contentLength: number, bearer = token): string {
  return [
    `POST ${encryptPath} HTTP/1.1`,
    "host: vault",
    "content-type: application/json",
    `authorization: Bearer ${bearer}`,
    `content-length: ${contentLength}`,
    "\r\n",
  ].join("\r\n");
}

const goodBody = JSON.stringify({ keyring: "env_1", data: "x" });

interface Http2Answer {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly body: Buffer;
  readonly trailers: IncomingHttpHeaders;
}

/** A session, and calls on it whose bodies are sent as far as told. */
async function openCalls(t: TestContext, url: string) {
  const session = connectHttp2(url);
  t.after(() => session.destroy());
  await once(session, "connect");
  const call = async (
    headers: Readonly<Record<string, string>>,
    body: { readonly bytes: Uint8Array | string; readonly isWhole: boolean },
    path = encryptPath,
  ): Promise<Http2Answer> => {
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    const chunks: Buffer[] = [];
    let trailers: IncomingHttpHeaders = {};
    let answered: IncomingHttpHeaders & IncomingHttpStatusHeader = {};
    stream.on("response", (received) => {
      answered = received;
    });
    stream.on("trailers", (received) => {
      trailers = received;
    });
    stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
    const ended = once(stream, "end");
    if (body.isWhole) stream.end(body.bytes);
    else if (body.bytes.length > 0) stream.write(body.bytes);
    await ended;
    stream.destroy();
    return { headers: answered, body: Buffer.concat(chunks), trailers };
  };
  return { session, call };
}

const nothing = { bytes: "", isWhole: false };

describe("a call without the token is refused before its body has come", () => {
  test("over HTTP/1.1 with Connect's error", async (t) => {
    const { port, metrics } = await serve(t);
    const { socket, answer } = await openHttp1(t, port);
    socket.write(head(largest, "wrong"));
    const refusal = await answer();
    assert.match(refusal.head, /^HTTP\/1\.1 401 /);
    assert.equal(JSON.parse(refusal.body).code, "unauthenticated");
    assert.match(
      await metrics.render(),
      /unkey_krane_rpc_server_requests_total\{method="Encrypt",code="unauthenticated"\} 1/,
    );
  });

  test("over HTTP/2 in the words of each protocol", async (t) => {
    const { url } = await serve(t);
    const { call } = await openCalls(t, url);
    const unary = await call({ "content-type": "application/proto" }, nothing);
    assert.deepEqual([unary.headers[":status"], unary.headers["content-type"]], [401, "application/json"]);
    assert.equal(JSON.parse(unary.body.toString()).code, "unauthenticated");

    for (const type of ["application/grpc", "application/grpc+proto", "application/grpc-web+proto"]) {
      const { headers, body } = await call({ "content-type": type }, nothing);
      assert.deepEqual(
        [headers[":status"], headers["content-type"], headers["grpc-status"], body.length],
        [200, type, "16", 0],
      );
      assert.equal(decodeURIComponent(String(headers["grpc-message"])), "a valid bearer token is needed");
    }

    const watch = "/krane.v1.SchedulerService/Watch";
    const stream = await call({ "content-type": "application/connect+json" }, nothing, watch);
    assert.deepEqual(
      [stream.headers[":status"], stream.headers["content-type"]],
      [200, "application/connect+json"],
    );
    assert.equal(stream.body[0], 2, "the envelope of the end of a stream");
    assert.equal(JSON.parse(stream.body.subarray(5).toString()).error.code, "unauthenticated");
  });

  const transports: Record<string, (baseUrl: string) => Transport> = {
    "Connect over HTTP/1.1": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
    "Connect over HTTP/2": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }),
    gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
    "gRPC-Web over HTTP/1.1": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    "gRPC-Web over HTTP/2": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  };
  const isUnauthenticated = (error: unknown) => {
    assert.ok(error instanceof ConnectError, String(error));
    assert.equal(error.code, Code.Unauthenticated, error.message);
    return true;
  };
  for (const [name, transport] of Object.entries(transports))
    test(`and a client of ${name} understands it, however much it sends`, async (t) => {
      const { url } = await serve(t);
      const vault = createClient(VaultService, transport(url));
      const scheduler = createClient(SchedulerService, transport(url));
      for (const size of [1, 1_000_000, largest - 1_000])
        await assert.rejects(vault.encrypt({ keyring: "env_1", data: "x".repeat(size) }), isUnauthenticated);
      await assert.rejects(async () => {
        for await (const _ of scheduler.watch({})) assert.fail("it was let in");
      }, isUnauthenticated);
      const headers = { authorization: `Bearer ${token}` };
      assert.ok(await vault.encrypt({ keyring: "env_1", data: "x" }, { headers }));
    });

  test("and one that cannot be judged gets the code for that, in every protocol", async (t) => {
    const accepts = { current: () => Promise.reject(new Error("no such file")), refresh: () => undefined };
    const { url } = await serve(t, accepts);
    for (const [name, transport] of Object.entries(transports)) {
      const vault = createClient(VaultService, transport(url));
      await assert.rejects(
        vault.encrypt({ keyring: "env_1", data: "x" }),
        (error) => ConnectError.from(error).code === Code.Internal && !String(error).includes("file"),
        name,
      );
    }
  });

  test("and its connection is of use afterwards, over both versions of HTTP", async (t) => {
    const { url, port } = await serve(t);
    const http1 = await openHttp1(t, port);
    const body = "x".repeat(1_000_000);
    http1.socket.write(head(body.length, "wrong") + body);
    http1.socket.write(head(goodBody.length) + goodBody);
    assert.match((await http1.answer()).head, /^HTTP\/1\.1 401 /);
    assert.match((await http1.answer()).head, /^HTTP\/1\.1 200 /);

    const { call } = await openCalls(t, url);
    // More than the window of the whole connection holds, so that bytes that nobody takes would be missed.
    const part = { bytes: new Uint8Array(60_000), isWhole: false };
    for (let count = 0; count < 50; count++)
      assert.equal((await call({ "content-type": "application/proto" }, part)).headers[":status"], 401);
    const good = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const answer = await call(good, {
      bytes: JSON.stringify({ keyring: "env_1", data: body }),
      isWhole: true,
    });
    assert.equal(answer.headers[":status"], 200);
  });
});

test("an address that asks for secrets too often is refused before its messages have come", async (t) => {
  const { url } = await serveSecrets(t, {} as KubeApi, { find: () => undefined });
  const headers = {
    ":method": "POST",
    ":path": "/krane.v1.SecretsService/DecryptSecretsBlob",
    "content-type": "application/proto",
  };
  const sessions = await Promise.all(Array.from({ length: 8 }, () => openCalls(t, url)));
  const calls = sessions.flatMap(({ session }) =>
    Array.from({ length: 100 }, () => session.request(headers)),
  );
  const [answer] = await Promise.race(calls.map((stream) => once(stream, "response")));
  assert.equal(answer[":status"], 429);
});

describe("the memory that requests may take", () => {
  test("is a share per address, counted from what they announce, and given back with their end", async (t) => {
    const { port } = await serve(t);
    const greedy = await Promise.all(Array.from({ length: 7 }, () => openHttp1(t, port)));
    for (const { socket } of greedy) socket.write(head(largest));
    const refused = await openHttp1(t, port);
    // The calls before it are known to the server when it has answered one that came after them.
    refused.socket.write(head(largest));
    const refusal = await refused.answer();
    assert.match(refusal.head, /^HTTP\/1\.1 429 /);
    assert.equal(JSON.parse(refusal.body).code, "resource_exhausted");

    const neighbour = await openHttp1(t, port, "127.0.0.2");
    neighbour.socket.write(head(goodBody.length) + goodBody);
    assert.match((await neighbour.answer()).head, /^HTTP\/1\.1 200 /);

    for (const { socket } of greedy) socket.destroy();
    // Too large for the vault, which is found out only by who has read it.
    const large = JSON.stringify({ keyring: "env_1", data: "x".repeat(largest - 1_000) });
    await eventually("there is room again", async () => {
      const again = await openHttp1(t, port);
      again.socket.write(head(large.length) + large);
      assert.match((await again.answer()).head, /^HTTP\/1\.1 400 /);
    });
  });

  test("is refused beyond the largest message with an answer, and the connection is of use afterwards", async (t) => {
    const { port } = await serve(t);
    const { socket, answer } = await openHttp1(t, port);
    socket.write(head(0).replace("content-length: 0", "transfer-encoding: chunked"));
    const chunk = `100000\r\n${"x".repeat(0x100000)}\r\n`;
    socket.write(`${chunk.repeat(10)}0\r\n\r\n`);
    assert.match((await answer()).head, /^HTTP\/1\.1 429 /);
    socket.write(head(goodBody.length) + goodBody);
    assert.match((await answer()).head, /^HTTP\/1\.1 200 /);
  });

  test("that came without being announced ends the call that goes too far, with an answer", async (t) => {
    const { url } = await serve(t);
    const headers = {
      ":method": "POST",
      ":path": encryptPath,
      "content-type": "application/grpc+proto",
      authorization: `Bearer ${token}`,
    };
    // All but the last bytes of a message of nearly the largest size.
    const part = Buffer.alloc(largest - 2_000);
    part.writeUInt32BE(largest - 1_000, 1);
    const calls = await Promise.all(
      Array.from({ length: 9 }, async () => {
        const { session } = await openCalls(t, url);
        const stream = session.request(headers).resume();
        stream.write(part);
        return stream;
      }),
    );
    const [trailers] = await Promise.race(calls.map((stream) => once(stream, "trailers")));
    assert.equal(trailers["grpc-status"], String(Code.ResourceExhausted));
  });
});
