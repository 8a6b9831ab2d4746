// The client over real HTTP/2: one connection, its life, its death, and what is left.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import { createDesiredStream } from "../../../src/control-plane/desired-stream.ts";
import { openSession } from "../../../src/control-plane/live-session.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { testEveryCall } from "../../support/stamped-calls.ts";
import { clientRegion, connectTo, failureOf, never, readAll, serveFrames, serveRpc } from "./bare-server.ts";

const limits = { connectTimeoutMs: 10_000, pingIntervalMs: 10_000, pingTimeoutMs: 5_000 };

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

describe("every method of ClusterService, over the network", () => {
  testEveryCall(clientRegion, async (t, server) => connectTo(t, (await serveRpc(t, server)).url).plane);
});

describe("every method of ClusterService, over the network and past an interceptor", () => {
  const passing: Interceptor = (next) => (request) => next(request);
  testEveryCall(clientRegion, async (t, server) => {
    const { url } = await serveRpc(t, server);
    return connectTo(t, url, { interceptors: [passing] }).plane;
  });
});

describe("a connection", () => {
  test("is one, whatever goes over it, and is gone after close()", async (t) => {
    const server = await serveRpc(t, {
      getDesiredDeploymentState: () => ({ version: 1n }),
      reportDeploymentStatus: () => ({}),
      async *watchDeployments(_, { signal }) {
        yield { version: 1n };
        await aborted(signal);
      },
    });
    const { plane, clock } = connectTo(t, server.url);
    assert.equal(server.accepted, 0);
    const states = plane.watch(kinds.deployment, 0n, never)[Symbol.asyncIterator]();
    await states.next();
    await Promise.all([
      ...Array.from({ length: 50 }, () => plane.get(kinds.deployment, { id: "d_1" }, never)),
      ...Array.from({ length: 50 }, () => plane.report(kinds.deployment, {}, never)),
    ]);
    assert.equal(server.accepted, 1);
    const rest = failureOf(states.next());
    await plane.close();
    assert.equal((await rest).code, "canceled");
    assert.equal(clock.timerCount, 0);
    await eventually("the server sees it go", () => assert.equal(server.sessions.size, 0));
  });

  test("is opened again by the next call after the server was away", async (t) => {
    const server = await serveRpc(t, { heartbeat: () => ({}) });
    const proxy = await startFaultProxy(t, server.port);
    const { plane } = connectTo(t, proxy.url);
    await plane.heartbeat(never);
    proxy.cut();
    await eventually("the next call works", () => plane.heartbeat(never));
    assert.equal(server.accepted, 2);
  });

  test("that nobody accepts is unavailable", async (t) => {
    const server = await serveRpc(t, {});
    await server.stop();
    const { plane } = connectTo(t, server.url);
    const error = await failureOf(plane.heartbeat(never));
    assert.equal(error.code, "unavailable");
    assert.match(error.message, /^Heartbeat: .*ECONNREFUSED/);
    const { error: ended } = await readAll(plane.watch(kinds.deployment, 0n, never));
    assert.equal(ended?.code, "unavailable");
    assert.deepEqual([error.reach, ended?.reach], ["unreachable", "unreachable"]);
  });

  test("that hangs while it is made ends with its own limit, also for a stream", async (t) => {
    const sockets: Socket[] = [];
    const mute = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
    mute.listen(0, "127.0.0.1");
    await once(mute, "listening");
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      mute.close();
    });
    // A TLS handshake that never answers.
    const { plane, clock } = connectTo(t, `https://127.0.0.1:${(mute.address() as AddressInfo).port}`);
    const reading = readAll(plane.watch(kinds.deployment, 0n, never));
    await eventually("it is accepted", () => assert.equal(sockets.length, 1));
    await clock.advance(10_000);
    const { error } = await reading;
    assert.equal(error?.code, "unavailable");
    assert.equal(error?.reach, "broken");
    assert.match(error?.message ?? "", /no connection within 10000 ms/);
  });
});

describe("a peer that disappears silently", () => {
  test("is detected by pings, and the stream is opened again at the cursor", async (t) => {
    const opened: bigint[] = [];
    const server = await serveRpc(t, {
      heartbeat: () => ({}),
      async *watchDeployments({ versionLastSeen }, { signal }) {
        opened.push(versionLastSeen);
        yield { version: versionLastSeen + 5n };
        await aborted(signal);
      },
    });
    const proxy = await startFaultProxy(t, server.port);
    const { plane, clock } = connectTo(t, proxy.url);
    let cursor = 0n;
    const stream = createDesiredStream(
      {
        controller: "deployments",
        open: (version, signal) => plane.watch(kinds.deployment, version, signal),
        cursor: () => cursor,
        resetCursor: () => assert.fail("nobody asked for a replay"),
        onState(state) {
          cursor = state.version;
        },
      },
      { clock, random: createSeededRandom(1) },
    );
    const stop = new AbortController();
    const running = stream.run(stop.signal);
    await eventually("it is open", () => assert.equal(stream.status().state, "open"));
    for (let round = 0; round < 5; round++) {
      await clock.advance(10_000);
      // Its answer comes after that of the ping, on the same connection.
      await plane.heartbeat(never);
    }
    assert.equal(server.accepted, 1);

    proxy.freeze();
    await clock.advance(15_000);
    await eventually("the loss is seen", () => assert.equal(stream.status().state, "waiting"));
    assert.equal(stream.status().lastError?.code, "unavailable");
    assert.match(stream.status().lastError?.message ?? "", /no response to a ping within 5000 ms/);
    await clock.advance(5_000);
    await eventually("it is open again", () => assert.equal(cursor, 10n));
    assert.deepEqual(opened, [0n, 5n]);
    assert.equal(server.accepted, 2);
    stop.abort();
    await running;
  });

  test("does not hold up the end, not even with megabytes that it never took", async (t) => {
    const windowBytes = 2 ** 30;
    const server = await serveFrames(t, (stream) => stream.respond(), { windowBytes });
    const proxy = await startFaultProxy(t, server.port);
    const session = openSession({ url: new URL(proxy.url), ...limits }, new FakeClock());
    await session.connected;
    const stream = session.request({ ":method": "POST", ":path": "/" });
    stream.on("error", () => undefined);
    // The answer comes after the server's settings, and so after its large window.
    await once(stream, "response");
    proxy.freeze();
    // More than the buffers of the system hold, so that a write is under way and stays so.
    stream.write(Buffer.alloc(128 * 1024 * 1024));
    await eventually("it is stuck", () =>
      assert.ok((stream.session?.socket.bytesWritten ?? 0) > 1024 * 1024, "not yet"),
    );
    session.destroy(new ConnectError("over", Code.Unavailable));
    await session.ended;
  });
});

test("a timer that fires on a destroyed session, before its close event, does nothing", async (t) => {
  const server = await serveFrames(t, () => undefined);
  // A clock whose timers the test fires by hand, also those that were cancelled.
  const timers: (() => void)[] = [];
  let nowMs = 0;
  const clock = {
    wallMs: () => nowMs,
    nowMs: () => nowMs,
    setTimer: (_: number, callback: () => void) => {
      timers.push(callback);
      return { cancel: () => undefined };
    },
  };
  const session = openSession({ url: new URL(server.url), ...limits }, clock);
  await session.connected;
  nowMs = 60_000;
  session.destroy(new ConnectError("over", Code.Unavailable));
  for (const fire of timers.splice(0)) fire();
  assert.equal(session.takesRequests, false);
  await session.ended;
  for (const fire of timers.splice(0)) fire();
});

test("GOAWAY lets open streams go on, and sends new calls to a new connection", async (t) => {
  let proceed: () => void = () => undefined;
  const paused = new Promise<void>((resolve) => (proceed = resolve));
  const server = await serveRpc(t, {
    heartbeat: () => ({}),
    async *watchDeployments() {
      yield { version: 1n };
      await paused;
      yield { version: 2n };
    },
  });
  const { plane } = connectTo(t, server.url);
  const states = plane.watch(kinds.deployment, 0n, never)[Symbol.asyncIterator]();
  const first = await states.next();
  assert.equal(first.value?.version, 1n);
  for (const session of server.sessions) session.goaway();
  await eventually("new calls go elsewhere", async () => {
    await plane.heartbeat(never);
    assert.equal(server.accepted, 2);
  });
  proceed();
  const second = await states.next();
  assert.equal(second.value?.version, 2n);
  assert.equal((await states.next()).done, true);
  await eventually("the old connection is gone", () => assert.equal(server.sessions.size, 1));
});

test("ENHANCE_YOUR_CALM doubles the interval of pings, up to five minutes; another code does not", async (t) => {
  const server = await serveRpc(t, { heartbeat: () => ({}) });
  const { plane, clock } = connectTo(t, server.url);
  /** The time from connecting until the first ping. */
  const quietMs = async () => {
    const known = server.accepted;
    await eventually("there is a new connection", async () => {
      await plane.heartbeat(never);
      assert.equal(server.accepted, known + 1);
    });
    let pings = 0;
    const session = newest();
    session?.on("ping", () => pings++);
    const startedMs = clock.nowMs();
    while (pings === 0) {
      await clock.advance(10_000);
      // Its response comes after the client's ping, on the same connection.
      await new Promise<void>((resolve) => session?.ping(() => resolve()));
    }
    return clock.nowMs() - startedMs;
  };
  const newest = () => [...server.sessions].at(-1);
  const endWith = (code: number) => newest()?.goaway(code);
  assert.equal(await quietMs(), 10_000);
  endWith(constants.NGHTTP2_INTERNAL_ERROR);
  assert.equal(await quietMs(), 10_000);
  const seen: number[] = [];
  for (let times = 0; times < 6; times++) {
    endWith(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    seen.push(await quietMs());
  }
  assert.deepEqual(seen, [20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
});

test("a reader that stops early closes its stream at the server, and the connection stays", async (t) => {
  let open = 0;
  const server = await serveRpc(t, {
    heartbeat: () => ({}),
    async *watchDeployments(_, { signal }) {
      open += 1;
      yield { version: 1n };
      await aborted(signal);
      open -= 1;
    },
  });
  const { plane } = connectTo(t, server.url);
  for (let reads = 0; reads < 5; reads++)
    for await (const _ of plane.watch(kinds.deployment, 0n, never)) break;
  await eventually("all are closed", () => assert.equal(open, 0));
  await plane.heartbeat(never);
  assert.equal(server.accepted, 1);
});

test("a reader that is slow holds the server back, and gets everything in order", async (t) => {
  const count = 300;
  let produced = 0;
  // Random, because zeros would be packed to nothing on the way.
  const policy = randomBytes(64 * 1024);
  const server = await serveRpc(t, {
    heartbeat: () => ({}),
    async *watchCiliumNetworkPolicies() {
      while (produced < count)
        yield { version: BigInt(++produced), state: { case: "apply" as const, value: { policy } } };
    },
  });
  const { plane } = connectTo(t, server.url);
  const versions: bigint[] = [];
  for await (const { version } of plane.watch(kinds.policy, 0n, never)) {
    versions.push(version);
    if (versions.length > 1) continue;
    // Enough round trips for a server that is not held back to be far ahead.
    for (let trip = 0; trip < 100; trip++) await plane.heartbeat(never);
    assert.ok(produced < count / 3, `${produced} of ${count} were sent to a reader that took one`);
  }
  assert.deepEqual(
    versions,
    Array.from({ length: count }, (_, index) => BigInt(index + 1)),
  );
});
