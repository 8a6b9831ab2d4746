// A message that arrives byte by byte, over real HTTP/2: pings prove the connection, and still the stream delivers
// nothing.
import assert from "node:assert/strict";
import type { ServerHttp2Stream } from "node:http2";
import { describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import { createDesiredStream } from "../../../src/control-plane/desired-stream.ts";
import { type DeploymentState, DeploymentStateSchema } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { eventually } from "../../support/eventually.ts";
import { connectTo, envelope, failureOf, never, serveFrames } from "./bare-server.ts";

const streamHeader = { ":status": 200, "content-type": "application/connect+proto" };

function message(version: bigint): Buffer {
  return envelope(0, toBinary(DeploymentStateSchema, create(DeploymentStateSchema, { version })));
}

/** Opens a stream whose server sends what the test tells it to. */
async function openStream(t: Parameters<typeof serveFrames>[0]) {
  const streams: ServerHttp2Stream[] = [];
  const server = await serveFrames(t, (stream) => {
    stream.respond(streamHeader);
    streams.push(stream);
  });
  const client = connectTo(t, server.url);
  const states = client.plane.watch(kinds.deployment, 0n, never)[Symbol.asyncIterator]();
  const pull = () => {
    const pulled = states.next();
    // A test looks at it later, or never.
    pulled.catch(() => undefined);
    return pulled;
  };
  let next = pull();
  await eventually("the stream is open", () => assert.equal(streams.length, 1));
  return {
    client,
    server,
    send: (bytes: Uint8Array) => deliver(streams[0], bytes),
    /** The next state, or the error that the stream ended with. */
    async take(): Promise<DeploymentState | undefined> {
      const { value } = await next;
      next = pull();
      return value;
    },
    failure: () => failureOf(next),
    isReset: () => streams[0]?.closed,
  };
}

/** Sends the bytes and resolves when they have arrived: pings overtake nothing. */
async function deliver(stream: ServerHttp2Stream | undefined, bytes: Uint8Array) {
  assert.ok(stream !== undefined);
  if (bytes.byteLength > 0) await new Promise<void>((resolve) => stream.write(bytes, () => resolve()));
  for (let trip = 0; trip < 3; trip++)
    await new Promise<void>((resolve) => stream.session?.ping(() => resolve()));
}

describe("a message that dribbles in", () => {
  for (const { what, early } of [
    { what: "the first one of a stream", early: [] },
    { what: "one behind a whole message", early: [message(1n)] },
  ])
    test(`ends the stream after 60 s: ${what}`, async (t) => {
      const stream = await openStream(t);
      for (const bytes of early) {
        await stream.send(bytes);
        assert.equal((await stream.take())?.version, 1n);
      }
      const bytes = message(2n ** 60n);
      for (let index = 0; index < 4; index++) {
        await stream.send(bytes.subarray(index, index + 1));
        assert.equal(stream.isReset(), false, `after ${index * 15} s`);
        await stream.client.clock.advance(15_000);
      }
      const error = await stream.failure();
      assert.equal(error.code, "deadline_exceeded");
      assert.match(error.message, /^WatchDeployments: bytes arrived, but no whole message within 60 s$/);
      await eventually("the server sees it end", () => assert.equal(stream.isReset(), true));
      assert.equal(stream.server.accepted, 1);
    });

  test("ends the stream also if its first part came together with the message before it", async (t) => {
    const stream = await openStream(t);
    await stream.send(Buffer.concat([message(1n), message(2n).subarray(0, 6)]));
    assert.equal((await stream.take())?.version, 1n);
    await stream.send(Buffer.alloc(0));
    await stream.client.clock.advance(60_000);
    assert.equal((await stream.failure()).code, "deadline_exceeded");
  });

  test("is read if it is whole in time, and the next one has 60 s of its own", async (t) => {
    const stream = await openStream(t);
    for (const version of [1n, 2n, 3n]) {
      const bytes = message(version);
      await stream.send(bytes.subarray(0, 3));
      await stream.client.clock.advance(59_000);
      await stream.send(bytes.subarray(3));
      assert.equal((await stream.take())?.version, version);
    }
  });
});

test("a stream without an unfinished message stays open, however long it is silent", async (t) => {
  const stream = await openStream(t);
  await stream.send(message(1n));
  assert.equal((await stream.take())?.version, 1n);
  for (let minute = 0; minute < 60; minute++) {
    for (let ping = 0; ping < 6; ping++) {
      await stream.client.clock.advance(10_000);
      await stream.send(Buffer.alloc(0));
    }
  }
  await stream.send(message(2n));
  assert.equal((await stream.take())?.version, 2n);
  assert.equal(stream.server.accepted, 1);
});

test("a reader that is slow does not end a stream whose message waits for it", async (t) => {
  const streams: ServerHttp2Stream[] = [];
  const server = await serveFrames(t, (stream) => {
    streams.push(stream);
    stream.respond(streamHeader);
    for (let version = 1n; version <= 5_000n; version++) stream.write(message(version));
  });
  const { plane, clock } = connectTo(t, server.url);
  const states = plane.watch(kinds.deployment, 0n, never)[Symbol.asyncIterator]();
  for (let version = 1n; version <= 5_000n; version++) {
    assert.equal((await states.next()).value?.version, version);
    if (version % 1_000n !== 0n) continue;
    for (let second = 0; second < 70; second += 10) {
      await clock.advance(10_000);
      await deliver(streams[0], Buffer.alloc(0));
    }
  }
});

test("the desired stream is opened again at its cursor, and reads what it missed", async (t) => {
  const opened: ServerHttp2Stream[] = [];
  const server = await serveFrames(t, (stream) => {
    stream.respond(streamHeader);
    opened.push(stream);
  });
  const client = connectTo(t, server.url);
  const versions: bigint[] = [];
  const stream = createDesiredStream(
    {
      controller: "deployments",
      open: (version, signal) => client.plane.watch(kinds.deployment, version, signal),
      cursor: () => versions.at(-1) ?? 0n,
      resetCursor: () => assert.fail("nobody asked for a replay"),
      onState: ({ version }) => void versions.push(version),
    },
    { clock: client.clock, random: createSeededRandom(1) },
  );
  const stop = new AbortController();
  const running = stream.run(stop.signal);
  await eventually("it is open", () => assert.equal(opened.length, 1));
  await deliver(opened[0], message(1n));
  await eventually("the first message is read", () => assert.deepEqual(versions, [1n]));
  const second = message(2n);
  // 540 s, as it was once seen.
  for (let index = 0; index < 4; index++) {
    await deliver(opened[0], second.subarray(index, index + 1));
    await client.clock.advance(15_000);
  }
  await eventually("it waits", () => assert.equal(stream.status().state, "waiting"));
  assert.equal(stream.status().lastError?.code, "deadline_exceeded");
  await client.clock.advance(5_000);
  await eventually("it is opened again", () => assert.ok(opened.length >= 2, "not yet"));
  await deliver(
    opened.find((one) => !one.closed),
    second,
  );
  await eventually("the second message is read", () => assert.deepEqual(versions, [1n, 2n]));
  stop.abort();
  await running;
});
