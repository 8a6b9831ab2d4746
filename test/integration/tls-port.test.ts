// A port with TLS: both versions of HTTP by what the handshake agrees on, and a
// certificate that is renewed while it runs.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect as connectTcp } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { fileURLToPath } from "node:url";
import { type HttpHandler, jsonResponse, routeByPath, serveReads } from "../../src/http/http-handler.ts";
import type { HttpLimits } from "../../src/http/http-limits.ts";
import { startHttpPort } from "../../src/http/http-port.ts";
import { ServiceError } from "../../src/http/service-error.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { fetchHttp1, fetchHttp2, openHttp2, requestHttp2 } from "../support/http-clients.ts";
import { createQuietLog } from "../support/quiet-log.ts";

const signal = new AbortController().signal;
const hello = serveReads(() => jsonResponse(200, { hello: "world" }));

async function loadPair(name: "first" | "second") {
  const read = (file: string) =>
    readFile(fileURLToPath(new URL(`../../testdata/tls/${file}`, import.meta.url)), "utf8");
  return { cert: await read(`${name}.cert.pem`), key: await read(`${name}.key.pem`) };
}

const first = await loadPair("first");
const second = await loadPair("second");

async function startTlsPort(t: TestContext, handler: HttpHandler = hello, limits: Partial<HttpLimits> = {}) {
  const clock = new FakeClock();
  const files = new Map([
    ["cert.pem", first.cert],
    ["key.pem", first.key],
  ]);
  const readTextFile = async (path: string) => files.get(path) ?? assert.fail("no such file");
  const options = { port: 0, setting: "rpc_port", tls: { certFile: "cert.pem", keyFile: "key.pem" }, limits };
  const deps = { clock, log: createQuietLog(), readTextFile };
  const port = await startHttpPort(routeByPath(new Map([["/hello", handler]])), options, deps, signal);
  t.after(() => port.stop(AbortSignal.abort()));
  /** The certificate that a new client is shown. */
  const shown = async () => {
    const socket = connectTls({ port: port.port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return subject.CN;
  };
  return { clock, files, port, shown, url: `https://127.0.0.1:${port.port}` };
}

describe("a port with TLS", () => {
  test("speaks HTTP/1.1 and HTTP/2, and HTTP/1.1 to a client that does not negotiate", async (t) => {
    const { url, port } = await startTlsPort(t);
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      const answer = await fetched(`${url}/hello`, { ca: first.cert });
      assert.deepEqual([answer.status, answer.body], [200, '{"hello":"world"}\n']);
    }
    const socket = connectTls({ port: port.port, host: "127.0.0.1", ca: first.cert });
    await once(socket, "secureConnect");
    assert.equal(socket.alpnProtocol, false);
    socket.write("GET /hello HTTP/1.1\r\nhost: krane\r\nconnection: close\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1.1 200 /);
    socket.destroy();
  });

  test("a client without TLS gets nothing, and the others still do", async (t) => {
    const { url } = await startTlsPort(t);
    await assert.rejects(fetchHttp1(`${url.replace("https:", "http:")}/hello`));
    assert.equal((await fetchHttp1(`${url}/hello`, { ca: first.cert })).status, 200);
  });

  test("a silent connection is closed when all places are taken, one with a request is not", async (t) => {
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      let arrived: () => void = () => assert.fail("nobody waits for it yet");
      let answer: () => void = () => assert.fail("no request has arrived yet");
      const handler: HttpHandler = async (request, response) => {
        const answered = new Promise<void>((resolve) => {
          answer = resolve;
        });
        arrived();
        await answered;
        await hello(request, response);
      };
      const inFlight = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      const { url, port } = await startTlsPort(t, handler, { connectionsMax: 1 });
      const connect = async () => {
        const socket = connectTcp({ port: port.port, host: "127.0.0.1" });
        await once(socket, "connect");
        return { socket, gone: once(socket, "close") };
      };
      const silent = await connect();
      const busy = fetched(`${url}/hello`, { ca: first.cert });
      await silent.gone;
      await inFlight;
      await (await connect()).gone;
      answer();
      assert.equal((await busy).status, 200);
    }
  });

  test("an HTTP/2 client that goes away without a goodbye leaves nothing behind", async (t) => {
    const { port, clock } = await startTlsPort(t);
    const timersBefore = clock.timerCount;
    const socket = connectTls({ port: port.port, host: "127.0.0.1", ca: first.cert, ALPNProtocols: ["h2"] });
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0");
    await once(socket, "data");
    assert.equal(clock.timerCount, timersBefore + 1);
    socket.end();
    await once(socket.resume(), "close");
    await eventually("the server has seen it go", () => assert.equal(clock.timerCount, timersBefore));
  });

  test("after a stop nothing listens, whatever state the connections were in", async (t) => {
    let arrived: () => void = () => assert.fail("a promise calls its executor at once");
    const inFlight = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { url, port, clock } = await startTlsPort(t, () => {
      arrived();
      return new Promise(() => undefined);
    });
    const silent = connectTcp({ port: port.port, host: "127.0.0.1" });
    await once(silent, "connect");
    const session = await openHttp2(url, { ca: first.cert });
    const cut = [
      assert.rejects(requestHttp2(session, "/hello")),
      assert.rejects(fetchHttp1(`${url}/hello`, { ca: first.cert })),
      once(silent, "close"),
    ];
    await inFlight;
    const stopped = port.stop(signal);
    await clock.advance(10_000);
    await stopped;
    await Promise.all(cut);
    await assert.rejects(fetchHttp1(`${url}/hello`, { ca: first.cert }), { code: "ECONNREFUSED" });
    assert.equal(clock.timerCount, 0);
  });
});

describe("a certificate", () => {
  test("that is renewed is used for new connections, and old ones stay", async (t) => {
    const { clock, files, url, shown } = await startTlsPort(t);
    const session = await openHttp2(url, { ca: first.cert });
    assert.equal(await shown(), "krane test only (first)");
    files.set("cert.pem", second.cert).set("key.pem", second.key);
    await clock.advance(10_000);
    assert.equal(await shown(), "krane test only (second)");
    assert.equal((await fetchHttp2(`${url}/hello`, { ca: second.cert })).status, 200);
    assert.equal((await requestHttp2(session, "/hello")).status, 200);
    session.close();
  });

  test("that is renewed badly leaves the old one in use until it is right", async (t) => {
    const { clock, files, shown } = await startTlsPort(t);
    for (const bad of [second.cert, "", "-----BEGIN CERTIFICATE-----\nhalf"]) {
      files.set("cert.pem", bad);
      await clock.advance(10_000);
      assert.equal(await shown(), "krane test only (first)");
    }
    files.delete("cert.pem");
    await clock.advance(10_000);
    assert.equal(await shown(), "krane test only (first)");
    files.set("cert.pem", second.cert).set("key.pem", second.key);
    await clock.advance(10_000);
    assert.equal(await shown(), "krane test only (second)");
  });

  test("that cannot be used at the start is an error that names the setting", async () => {
    const start = (files: Record<string, string>) =>
      startHttpPort(
        hello,
        { port: 0, setting: "rpc_port", tls: { certFile: "cert.pem", keyFile: "key.pem" } },
        {
          clock: new FakeClock(),
          log: createQuietLog(),
          readTextFile: async (path) => files[path] ?? Promise.reject(new Error("no such file")),
        },
        signal,
      );
    const fails = async (files: Record<string, string>, message: RegExp) =>
      assert.rejects(start(files), (error: unknown) => {
        assert.ok(error instanceof ServiceError);
        assert.equal(error.code, "certificate_unusable");
        assert.match(error.message, message);
        return true;
      });
    await fails({ "key.pem": first.key }, /^tls.cert_file: cannot read cert.pem: no such file$/);
    await fails({ "cert.pem": first.cert }, /^tls.key_file: cannot read key.pem: no such file$/);
    await fails(
      { "cert.pem": first.cert, "key.pem": second.key },
      /^tls.cert_file: cert.pem and key.pem cannot be used together: /,
    );
  });
});
