// A message above the agent's limit from a control plane that does not know the limit, over real HTTP/2: it ends one
// connection, and the next one goes on behind it.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import { createDesiredStream } from "../../../src/control-plane/desired-stream.ts";
import { type DeploymentState, DeploymentStateSchema } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { eventually } from "../../support/eventually.ts";
import { connectTo, endOfStream, envelope, never, readAll, serveFrames } from "./bare-server.ts";

const streamHeader = {
  ":status": 200,
  "content-type": "application/connect+proto",
  "connect-content-encoding": "gzip",
};
const limits = { messageBytesMax: 64 * 1024 };

function state(version: bigint, encryptedEnvironmentVariables: Uint8Array = new Uint8Array()): Uint8Array {
  const identity = { k8sNamespace: "acme", k8sName: `web-${version}`, deploymentId: `d_${version}` };
  const value = { ...identity, encryptedEnvironmentVariables };
  return toBinary(
    DeploymentStateSchema,
    create(DeploymentStateSchema, { state: { case: "apply", value }, version }),
  );
}

const plain = (bytes: Uint8Array) => envelope(0, bytes);
const packed = (bytes: Uint8Array) => envelope(1, gzipSync(bytes));

const shown = ({ version, state: { case: kind }, tooLarge }: DeploymentState) => ({
  version,
  kind: tooLarge === undefined ? kind : `${tooLarge.spec?.k8sName} ${tooLarge.spec?.deploymentId}`,
});

describe("a message that is too large", () => {
  const noise = state(2n, randomBytes(200_000));
  const zeros = state(2n, new Uint8Array(50_000_000));
  for (const { what, large, size } of [
    { what: "as it is", large: plain(noise), size: noise.byteLength },
    { what: "compressed, and still too large", large: packed(noise), size: noise.byteLength },
    { what: "compressed to less than the limit", large: packed(zeros), size: zeros.byteLength },
  ])
    test(`ends one stream, and the next one reports it and goes on: ${what}`, async (t) => {
      const body = [plain(state(1n)), large, packed(state(3n)), plain(state(4n)), endOfStream];
      const server = await serveFrames(t, (stream) => {
        stream.respond(streamHeader);
        stream.end(Buffer.concat(body));
      });
      const { plane } = connectTo(t, server.url, { limits });
      const read = () => readAll(plane.watch(kinds.deployment, 0n, never));
      assert.equal((await read()).error?.code, "resource_exhausted");
      for (let times = 0; times < 2; times++) {
        const { states, error } = await read();
        assert.equal(error, undefined);
        assert.deepEqual(states.map(shown), [
          { version: 1n, kind: "apply" },
          { version: 2n, kind: "web-2 d_2" },
          { version: 3n, kind: "apply" },
          { version: 4n, kind: "apply" },
        ]);
        const { tooLarge } = states[1] ?? assert.fail("missing");
        assert.deepEqual([tooLarge?.bytes, tooLarge?.bytesMax], [BigInt(size), 65_536n]);
      }
    });

  for (const { what, bytes, code } of [
    { what: "cut off", bytes: plain(noise).subarray(0, 150_000), code: "internal" },
    { what: "cut off, compressed", bytes: packed(noise).subarray(0, 150_000), code: "internal" },
    {
      what: "damaged",
      bytes: Buffer.concat([envelope(0, Buffer.alloc(200_000, 0xff)), endOfStream]),
      code: "internal",
    },
    {
      what: "beyond all limits when it is decompressed",
      bytes: Buffer.concat([packed(state(2n, new Uint8Array(70_000_000))), endOfStream]),
      code: "resource_exhausted",
    },
  ])
    test(`still ends the stream without a guess at its version if it is ${what}`, async (t) => {
      let body: Uint8Array = plain(noise);
      const server = await serveFrames(t, (stream) => {
        stream.respond(streamHeader);
        stream.end(body);
      });
      const { plane } = connectTo(t, server.url, { limits });
      const read = () => readAll(plane.watch(kinds.deployment, 0n, never));
      await read();
      body = bytes;
      const { states, error } = await read();
      assert.deepEqual([states, error?.code], [[], code]);
    });
});

test("a desired stream passes a message that is too large within one reconnect", async (t) => {
  const large = state(2n, randomBytes(200_000));
  const server = await serveFrames(t, (stream) => {
    stream.respond(streamHeader);
    stream.write(Buffer.concat([plain(state(1n)), plain(large), plain(state(3n))]));
  });
  const { plane, clock } = connectTo(t, server.url, { limits });
  const versions = new Set<bigint>();
  const stream = createDesiredStream(
    {
      controller: "deployments",
      open: (version, signal) => plane.watch(kinds.deployment, version, signal),
      cursor: () => 0n,
      resetCursor: () => assert.fail("nobody asked for a replay"),
      onState: ({ version }) => void versions.add(version),
    },
    { clock, random: createSeededRandom(1) },
  );
  const stop = new AbortController();
  const running = stream.run(stop.signal);
  await eventually("it is refused", () => assert.equal(stream.status().state, "waiting"));
  assert.equal(stream.status().lastError?.code, "resource_exhausted");
  await clock.advance(5_000);
  await eventually("it goes on", () => assert.deepEqual([...versions], [1n, 2n, 3n]));
  assert.deepEqual([stream.status().state, stream.status().reconnects], ["open", 1]);
  stop.abort();
  await running;
});
