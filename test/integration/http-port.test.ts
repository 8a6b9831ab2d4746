// A port as clients see it: real sockets, both versions of HTTP, polite and rude peers.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { constants } from "node:http2";
import { connect, type Socket } from "node:net";
import type { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, type TestContext, test } from "node:test";
import { type Clock, createSystemClock } from "../../src/concurrency/clock.ts";
import { type HttpHandler, jsonResponse, routeByPath, serveReads } from "../../src/http/http-handler.ts";
import type { HttpLimits } from "../../src/http/http-limits.ts";
import { type HttpPort, startHttpPort } from "../../src/http/http-port.ts";
import { ServiceError } from "../../src/http/service-error.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { fetchHttp1, fetchHttp2, openHttp2, requestHttp2 } from "../support/http-clients.ts";
import { createQuietLog } from "../support/quiet-log.ts";

const hello = serveReads(() => jsonResponse(200, { hello: "world" }));
const signal = new AbortController().signal;
const emptySettings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

interface PortUnderTest {
  readonly handler?: HttpHandler;
  readonly limits?: Partial<HttpLimits>;
  readonly clock?: Clock;
}

async function startPort(t: TestContext, options: PortUnderTest = {}): Promise<HttpPort & { url: string }> {
  const routes = new Map([["/hello", options.handler ?? hello]]);
  const deps = {
    clock: options.clock ?? createSystemClock(),
    log: createQuietLog(),
    readTextFile: () => assert.fail("no file is needed without TLS"),
  };
  const portOptions = { port: 0, setting: "rpc_port", limits: options.limits ?? {} };
  const port = await startHttpPort(routeByPath(routes), portOptions, deps, signal);
  t.after(() => port.stop(AbortSignal.abort()));
  return { ...port, url: `http://127.0.0.1:${port.port}` };
}

async function openSocket(t: TestContext, port: HttpPort, localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port: port.port, host: "127.0.0.1", localAddress, allowHalfOpen: true });
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

/** Resolves when the connection is over, whether the server ended or reset it. */
async function untilGone(socket: Socket): Promise<void> {
  if (socket.closed) return;
  const gone = new Promise((resolve) => socket.once("close", resolve));
  socket.resume().on("end", () => socket.destroy());
  await gone;
}

/** A handler that answers when told, and tells when a request is in its hands. */
function createHeldHandler() {
  const { promise: inFlight, resolve: arrived } = createGate();
  const { promise: held, resolve: answer } = createGate();
  const handler: HttpHandler = async (request, response) => {
    arrived();
    await held;
    await hello(request, response);
  };
  return { handler, inFlight, answer };
}

function createGate() {
  let resolve: () => void = () => assert.fail("a promise calls its executor at once");
  const promise = new Promise<void>((resolved) => {
    resolve = resolved;
  });
  return { promise, resolve };
}

async function assertNothingListens(port: HttpPort): Promise<void> {
  await assert.rejects(fetchHttp1(`http://127.0.0.1:${port.port}/hello`), { code: "ECONNREFUSED" });
}

describe("one port", () => {
  test("HTTP/1.1 and HTTP/2 with prior knowledge get the same answer", async (t) => {
    const port = await startPort(t);
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      const answer = await fetched(`${port.url}/hello`);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["content-type"], "application/json");
      assert.equal(answer.body, '{"hello":"world"}\n');
    }
  });

  test("the query is no part of the path, and an unknown path is a 404 in JSON", async (t) => {
    const port = await startPort(t);
    assert.equal((await fetchHttp1(`${port.url}/hello?verbose=1`)).status, 200);
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      const answer = await fetched(`${port.url}/nowhere`);
      assert.equal(answer.status, 404);
      assert.deepEqual(JSON.parse(answer.body), { error: "not found" });
    }
  });

  test("HEAD has the headers of GET and no body; other methods are a 405 that says what is allowed", async (t) => {
    const port = await startPort(t);
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      const head = await fetched(`${port.url}/hello`, { method: "HEAD" });
      assert.deepEqual([head.status, head.headers["content-length"], head.body], [200, "18", ""]);
      const post = await fetched(`${port.url}/hello`, { method: "POST" });
      assert.deepEqual([post.status, post.headers.allow], [405, "GET, HEAD"]);
    }
  });

  test("a handler that fails answers 500, and the port goes on", async (t) => {
    const port = await startPort(t, {
      handler: () => Promise.reject(new Error("database password is 1234")),
    });
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      const answer = await fetched(`${port.url}/hello`);
      assert.equal(answer.status, 500);
      assert.equal(answer.body, '{"error":"internal error"}\n');
    }
  });

  test("a handler that fails after its headers cuts its own response, and the port goes on", async (t) => {
    const handler: HttpHandler = (_, response) => {
      response.setHeader("content-length", "100");
      (response as Writable).write("first half");
      throw new Error("no second half");
    };
    const port = await startPort(t, { handler });
    for (const fetched of [fetchHttp1, fetchHttp2]) await assert.rejects(fetched(`${port.url}/hello`));
    assert.equal((await fetchHttp1(`${port.url}/nowhere`)).status, 404);
  });

  test("an address of another machine is an error that names the address and its setting", async () => {
    const deps = {
      clock: createSystemClock(),
      log: createQuietLog(),
      readTextFile: () => assert.fail("no file is needed without TLS"),
    };
    // From the networks that are reserved for documentation.
    const place = { port: 0, host: "192.0.2.1", setting: "rpc_port", hostSetting: "listen_host" };
    await assert.rejects(startHttpPort(hello, place, deps, signal), (error: unknown) => {
      assert.ok(error instanceof ServiceError);
      assert.equal(error.code, "port_unavailable");
      assert.match(error.message, /^listen_host: cannot listen on 192\.0\.2\.1: /);
      return true;
    });
  });

  test("a port that is taken is an error that names the setting", async (t) => {
    const port = await startPort(t);
    const deps = {
      clock: createSystemClock(),
      log: createQuietLog(),
      readTextFile: () => assert.fail("no file is needed without TLS"),
    };
    const second = startHttpPort(hello, { port: port.port, setting: "rpc_port" }, deps, signal);
    await assert.rejects(second, (error: unknown) => {
      assert.ok(error instanceof ServiceError);
      assert.equal(error.code, "port_in_use");
      assert.equal(
        error.message,
        `rpc_port: port ${port.port} is already in use; choose another port or stop the process that uses it`,
      );
      return true;
    });
  });
});

describe("the first bytes", () => {
  async function writeByteByByte(socket: Socket, bytes: Buffer): Promise<void> {
    socket.setNoDelay(true);
    for (const byte of bytes) {
      await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  test("an HTTP/2 preface that comes byte by byte is HTTP/2", async (t) => {
    const port = await startPort(t);
    const socket = await openSocket(t, port);
    await writeByteByByte(socket, Buffer.concat([preface, emptySettings]));
    const [frame] = (await once(socket, "data")) as [Buffer];
    const settingsFrame = 4;
    assert.equal(frame[3], settingsFrame);
  });

  test("an HTTP/1.1 request that comes byte by byte is HTTP/1.1, also one that begins like a preface", async (t) => {
    const port = await startPort(t);
    for (const [method, status] of [
      ["GET", 200],
      ["PROPFIND", 405],
    ] as const) {
      const socket = await openSocket(t, port);
      const request = `${method} /hello HTTP/1.1\r\nhost: krane\r\nconnection: close\r\n\r\n`;
      await writeByteByByte(socket, Buffer.from(request));
      assert.match(await text(socket), new RegExp(`^HTTP/1.1 ${status} `));
    }
  });

  test("bytes that are neither are refused as bad HTTP/1.1", async (t) => {
    const port = await startPort(t);
    for (const bytes of ["PRI * HTTP/3.0\r\n\r\n", "\u0016\u0003\u0001 a TLS handshake"]) {
      const socket = await openSocket(t, port);
      socket.write(bytes);
      assert.match(await text(socket), /^HTTP\/1.1 400 /);
    }
  });

  test("two pipelined requests in the first chunk both get an answer", async (t) => {
    const port = await startPort(t);
    const socket = await openSocket(t, port);
    socket.write(
      "GET /hello HTTP/1.1\r\nhost: a\r\n\r\nGET /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    );
    const answers = await text(socket);
    assert.deepEqual(answers.match(/^HTTP\/1.1 \d+/gm), ["HTTP/1.1 200", "HTTP/1.1 404"]);
  });

  for (const [what, bytes] of [
    ["nothing", Buffer.alloc(0)],
    ["half a preface", preface.subarray(0, 10)],
  ] as const) {
    test(`a client that sends ${what} is cut when its time is over`, async (t) => {
      const clock = new FakeClock();
      const port = await startPort(t, { clock });
      const socket = await openSocket(t, port);
      if (bytes.length > 0) await new Promise((resolve) => socket.write(bytes, resolve));
      await eventually("the server has seen the connection", () => assert.equal(clock.timerCount, 1));
      await clock.advance(4_999);
      assert.equal(socket.readableEnded, false);
      const ended = text(socket);
      await clock.advance(1);
      assert.equal(await ended, "");
      assert.equal(clock.timerCount, 0);
    });
  }

  test("a client that goes away before it said anything leaves nothing behind", async (t) => {
    const clock = new FakeClock();
    const port = await startPort(t, { clock });
    for (const leave of ["end", "resetAndDestroy"] as const) {
      const socket = await openSocket(t, port);
      await eventually("the server has seen it come", () => assert.equal(clock.timerCount, 1));
      socket[leave]();
      await eventually("the server has seen it go", () => assert.equal(clock.timerCount, 0));
    }
  });
});

describe("limits", () => {
  test("an HTTP/1.1 request whose headers never end is refused", async (t) => {
    const port = await startPort(t, { limits: { headersTimeoutMs: 100 } });
    const socket = await openSocket(t, port);
    socket.write("GET /hello HTTP/1.1\r\nhost: krane\r\n");
    assert.match(await text(socket), /^HTTP\/1.1 408 /);
  });

  test("headers above the limit are refused in both versions", async (t) => {
    const port = await startPort(t);
    const long = "x".repeat(20_000);
    const request = httpRequest(`${port.url}/hello`, { agent: false, headers: { long } });
    request.end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    assert.equal(response.statusCode, 431);
    response.resume();

    const session = await openHttp2(port.url);
    t.after(() => session.destroy());
    // The limit holds from the moment on at which the client has acknowledged it.
    await requestHttp2(session, "/hello");
    const stream = session.request({ ":path": "/hello", long });
    await assert.rejects(once(stream, "response"));
  });

  test("an HTTP/2 connection without requests is closed when its time is over, one with a request is not", async (t) => {
    const clock = new FakeClock();
    const { handler, inFlight, answer } = createHeldHandler();
    const port = await startPort(t, { clock, handler });
    const busy = await openHttp2(port.url);
    const answered = requestHttp2(busy, "/hello");
    await inFlight;
    const idle = await openHttp2(port.url);
    await requestHttp2(idle, "/nowhere");
    const idleClosed = once(idle, "close");
    await clock.advance(60_000);
    await idleClosed;
    answer();
    assert.equal((await answered).status, 200);
    busy.close();
  });

  test("an idle HTTP/2 connection ends also when its client hears no goodbye", async (t) => {
    const clock = new FakeClock();
    const port = await startPort(t, { clock });
    const socket = await openSocket(t, port);
    socket.write(Buffer.concat([preface, emptySettings]));
    const told = once(socket, "end");
    await once(socket, "data");
    socket.resume();
    await clock.advance(60_000);
    await told;
    await clock.advance(5_000);
    // A connection that is gone answers the next bytes with a reset; one that is half open takes them.
    await eventually("the server has hung up", () => {
      socket.write(emptySettings);
      assert.equal(socket.destroyed, true);
    });
  });

  test("an HTTP/2 request whose body never ends is cancelled", async (t) => {
    const clock = new FakeClock();
    const handler: HttpHandler = (request) => void request.resume();
    const port = await startPort(t, { clock, handler });
    const session = await openHttp2(port.url);
    t.after(() => session.destroy());
    const stream = session.request({ ":path": "/hello", ":method": "POST" });
    stream.write("the beginning of a long story");
    await eventually("the request has arrived", () => assert.equal(clock.timerCount, 1));
    const closed = once(stream, "close");
    await clock.advance(60_000);
    await closed;
    assert.equal(stream.rstCode, constants.NGHTTP2_CANCEL);
  });

  test("a client that opens streams only to reset them does not hurt the others", async (t) => {
    const port = await startPort(t);
    const rude = await openHttp2(port.url);
    t.after(() => rude.destroy());
    rude.on("error", () => undefined);
    for (let burst = 0; burst < 50 && !rude.destroyed; burst++) {
      for (let n = 0; n < 100 && !rude.destroyed && !rude.closed; n++) {
        const stream = rude.request({ ":path": "/hello" });
        stream.on("error", () => undefined);
        stream.close(constants.NGHTTP2_CANCEL);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal((await fetchHttp1(`${port.url}/hello`)).status, 200);
    assert.equal((await fetchHttp2(`${port.url}/hello`)).status, 200);
  });

  const frame = (type: number, flags: number, stream: number, payload: Buffer) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head.writeUInt8(type, 3);
    head.writeUInt8(flags, 4);
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, payload]);
  };
  const windowUpdate = frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]));
  for (const [what, frames] of [
    ["headers that cannot be decoded", [frame(1, 5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))]],
    ["a window that overflows", [windowUpdate, windowUpdate]],
    [
      "headers that go on for ever",
      [
        frame(1, 0, 1, Buffer.alloc(0)),
        ...Array(20_000).fill(frame(9, 0, 1, Buffer.from([0x40, 1, 0x61, 1, 0x62]))),
      ],
    ],
    ["a frame above the agreed size", [frame(0, 0, 1, Buffer.alloc(200_000))]],
    ["noise", [Buffer.alloc(4096, 0xa5)]],
  ] as const) {
    test(`${what} after an HTTP/2 preface end that connection and no other`, async (t) => {
      const clock = new FakeClock();
      const port = await startPort(t, { clock });
      const socket = await openSocket(t, port);
      const closed = once(socket, "close");
      const answered = once(socket, "data");
      socket.on("end", () => socket.destroy());
      socket.write(Buffer.concat([preface, frame(4, 0, 0, Buffer.alloc(0)), ...frames]));
      await answered;
      socket.resume();
      // Node 20 says goodbye but does not hang up after some of these; the idle limit does.
      await clock.advance(60_000);
      await closed;
      assert.equal((await fetchHttp2(`${port.url}/hello`)).status, 200);
    });
  }

  test("when all places are taken, the oldest silent connection is closed, then the oldest idle one", async (t) => {
    const port = await startPort(t, { limits: { connectionsMax: 3 } });
    const ask = async (socket: Socket) => {
      socket.write("GET /hello HTTP/1.1\r\nhost: krane\r\n\r\n");
      assert.match(String(await once(socket, "data")), /^HTTP\/1.1 200 /);
    };
    const idle = await openSocket(t, port);
    await ask(idle);
    const idleToo = await openSocket(t, port);
    await ask(idleToo);
    const silent = await openSocket(t, port);
    await ask(await openSocket(t, port));
    assert.equal(await text(silent), "");
    await ask(idle);
    const gone = text(idle);
    await ask(await openSocket(t, port));
    assert.equal(await gone, "");
    await ask(idleToo);
  });

  test("an address that takes all it gets with requests in flight leaves the other places to others", async (t) => {
    let inFlight = 0;
    const held = createGate();
    const handler: HttpHandler = async (request, response) => {
      inFlight++;
      await held.promise;
      await hello(request, response);
    };
    const port = await startPort(t, { handler, limits: { connectionsMax: 4, connectionsPerAddressMax: 2 } });
    const ask = (socket: Socket, path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const greedy: Socket[] = [];
    for (const count of [1, 2]) {
      const socket = await openSocket(t, port);
      greedy.push(socket);
      ask(socket, "/hello");
      await eventually("its request has arrived", () => assert.equal(inFlight, count));
    }
    for (const _ of [3, 4]) {
      const socket = await openSocket(t, port);
      ask(socket, "/hello");
      await untilGone(socket);
    }

    const endings: Promise<void>[] = [];
    for (const _ of [1, 2, 3]) {
      const socket = await openSocket(t, port, "127.0.0.2");
      endings.push(untilGone(socket));
      ask(socket, "/nowhere");
      assert.match(String(await once(socket, "data")), /^HTTP\/1.1 404 /);
    }
    // Room was made among its own connections, and not among those of the other address.
    await Promise.race(endings);
    held.resolve();
    for (const socket of greedy) assert.match(String(await once(socket, "data")), /^HTTP\/1.1 200 /);
  });

  test("when every place has a request in flight, further connections are refused", async (t) => {
    for (const open of ["http1", "http2"] as const) {
      const { handler, inFlight, answer } = createHeldHandler();
      const port = await startPort(t, { handler, limits: { connectionsMax: 1 } });
      const fetched = open === "http1" ? fetchHttp1 : fetchHttp2;
      const answered = fetched(`${port.url}/hello`);
      await inFlight;
      assert.equal(await text(await openSocket(t, port)), "");
      answer();
      assert.equal((await answered).status, 200);
      await eventually("there is room again", async () =>
        assert.equal((await fetchHttp1(`${port.url}/nowhere`)).status, 404),
      );
    }
  });

  test("a client that pipelines without an end is cut after a few requests, and others are served", async (t) => {
    let handled = 0;
    const handler: HttpHandler = async (request, response) => {
      handled++;
      await new Promise((resolve) => setImmediate(resolve));
      await hello(request, response);
    };
    const port = await startPort(t, { handler });
    const socket = await openSocket(t, port);
    socket.write("GET /hello HTTP/1.1\r\nhost: a\r\n\r\n".repeat(5_000));
    await eventually("requests have arrived", () => assert.ok(handled > 0, "not yet"));
    assert.equal((await fetchHttp1(`${port.url}/hello`)).status, 200);
    await untilGone(socket);
    assert.ok(handled <= 17, String(handled));
  });

  test("an HTTP/2 client that goes away without a goodbye leaves nothing behind", async (t) => {
    const clock = new FakeClock();
    const port = await startPort(t, { clock });
    const socket = await openSocket(t, port);
    socket.write(Buffer.concat([preface, frame(4, 0, 0, Buffer.alloc(0))]));
    await once(socket, "data");
    socket.end();
    await text(socket);
    await eventually("the server has seen it go", () => assert.equal(clock.timerCount, 0));
  });

  const large = serveReads(() => jsonResponse(200, "x".repeat(16_000_000)));
  const leaveUntaken = {
    "HTTP/1.1": (socket: Socket) => socket.write("GET /hello HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2)),
    "HTTP/2 with its window shut": (socket: Socket) => {
      const initialWindowOf0 = Buffer.from([0, 4, 0, 0, 0, 0]);
      // :method GET, :scheme http, :path /hello, :authority a, from HPACK's static table.
      const headers = Buffer.from([0x82, 0x86, 0x04, 6, ...Buffer.from("/hello"), 0x01, 1, 0x61]);
      socket.write(Buffer.concat([preface, frame(4, 0, 0, initialWindowOf0), frame(1, 5, 1, headers)]));
    },
  };
  for (const [what, ask] of Object.entries(leaveUntaken)) {
    test(`an answer that is not taken in time ends the connection: ${what}`, async (t) => {
      const clock = new FakeClock();
      const answered = createGate();
      const handler: HttpHandler = async (request, response) => {
        await large(request, response);
        answered.resolve();
      };
      const port = await startPort(t, { clock, handler });
      const socket = await openSocket(t, port);
      ask(socket);
      await answered.promise;
      await clock.advance(30_000);
      await untilGone(socket);
      await eventually("no timer is left", () => assert.equal(clock.timerCount, 0));
    });
  }

  for (const [what, ask] of Object.entries(leaveUntaken)) {
    test(`a stream whose client takes nothing ends when its time is over: ${what}`, async (t) => {
      const clock = new FakeClock();
      const [begun, cut] = [createGate(), createGate()];
      const handler: HttpHandler = async (_, response) => {
        const answer: Writable = response;
        answer.once("close", cut.resolve);
        answer.write("x".repeat(16_000_000));
        begun.resolve();
      };
      const port = await startPort(t, { clock, handler });
      ask(await openSocket(t, port));
      await begun.promise;
      await clock.advance(30_000);
      await cut.promise;
    });

    test(`answers that wait for their clients hold so much memory, and the oldest go: ${what}`, async (t) => {
      const answered: (() => void)[] = [];
      const handler: HttpHandler = async (request, response) => {
        await large(request, response);
        answered.shift()?.();
      };
      const port = await startPort(t, {
        clock: new FakeClock(),
        handler,
        limits: { responseBytesMax: 40_000_000 },
      });
      const unread: Socket[] = [];
      for (let count = 0; count < 4; count++) {
        const { promise, resolve } = createGate();
        answered.push(resolve);
        const socket = await openSocket(t, port);
        unread.push(socket);
        ask(socket);
        await promise;
      }
      await untilGone(unread[0] ?? assert.fail("there is one"));
      assert.equal((await fetchHttp1(`${port.url}/hello`)).body.length, 16_000_003);
    });
  }

  test("an answer that its handler has not ended may stay open for hours", async (t) => {
    const clock = new FakeClock();
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      const [begun, held] = [createGate(), createGate()];
      const handler: HttpHandler = async (_, response) => {
        (response as Writable).write("the first half, ");
        begun.resolve();
        await held.promise;
        response.end("the second");
      };
      const port = await startPort(t, { clock, handler });
      const answered = fetched(`${port.url}/hello`);
      await begun.promise;
      await clock.advance(10 * 3_600_000);
      held.resolve();
      assert.equal((await answered).body, "the first half, the second");
    }
  });
});

describe("stopping", () => {
  test("requests in flight get their answer, and then nothing listens", async (t) => {
    for (const fetched of [fetchHttp1, fetchHttp2]) {
      const { handler, inFlight, answer } = createHeldHandler();
      const port = await startPort(t, { handler });
      const answered = fetched(`${port.url}/hello`);
      await inFlight;
      const stopped = port.stop(signal);
      await eventually("the port takes no new connections", () => assertNothingListens(port));
      answer();
      assert.equal((await answered).status, 200);
      await stopped;
    }
  });

  test("an HTTP/1.1 client is told that its connection ends with the answer", async (t) => {
    const { handler, inFlight, answer } = createHeldHandler();
    const port = await startPort(t, { handler });
    const socket = await openSocket(t, port);
    socket.write("GET /hello HTTP/1.1\r\nhost: krane\r\n\r\n");
    await inFlight;
    const stopped = port.stop(signal);
    answer();
    assert.match(await text(socket), /connection: close/i);
    await stopped;
  });

  test("connections without a request in flight do not hold up the end", async (t) => {
    const port = await startPort(t, { clock: new FakeClock() });
    const silent = await openSocket(t, port);
    const idle = await openSocket(t, port);
    idle.write("GET /hello HTTP/1.1\r\nhost: krane\r\n\r\n");
    await once(idle, "data");
    const halfWay = await openSocket(t, port);
    halfWay.write("POST /hello HTTP/1.1\r\nhost: krane\r\ncontent-length: 10\r\n\r\n");
    await once(halfWay, "data");
    const session = await openHttp2(port.url);
    await requestHttp2(session, "/hello");
    const gone = Promise.all([text(silent), text(idle), text(halfWay), once(session, "close")]);
    await port.stop(signal);
    await gone;
    await assertNothingListens(port);
  });

  for (const [what, hurry] of [
    ["when their time is over", false],
    ["at once when there is no time left", true],
  ] as const) {
    test(`requests that do not end are cut ${what}`, async (t) => {
      const clock = new FakeClock();
      for (const fetched of [fetchHttp1, fetchHttp2]) {
        const { handler, inFlight } = createHeldHandler();
        const port = await startPort(t, { clock, handler });
        const cut = assert.rejects(fetched(`${port.url}/hello`));
        await inFlight;
        const stopped = port.stop(hurry ? AbortSignal.abort() : signal);
        if (!hurry) await clock.advance(10_000);
        await stopped;
        await cut;
        await assertNothingListens(port);
        assert.equal(clock.timerCount, 0);
      }
    });
  }

  test("stopping twice is stopping once", async (t) => {
    const port = await startPort(t);
    await Promise.all([port.stop(signal), port.stop(signal)]);
    await assertNothingListens(port);
  });
});
