// What a server, or something in front of it, can answer that is not the protocol. Each
// gives an error with a code that says whose fault it is; none ends the process or the
// connection, and none is taken for the end of a stream or the absence of an object.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { ServerHttp2Stream } from "node:http2";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { DeploymentStateSchema } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import {
  connectTo,
  endOfStream,
  envelope,
  failureOf,
  never,
  readAll,
  serveFrames,
  serveRpc,
} from "./bare-server.ts";

const streamHeader = { ":status": 200, "content-type": "application/connect+proto" };
const unaryHeader = { ":status": 200, "content-type": "application/proto" };
const state = toBinary(DeploymentStateSchema, create(DeploymentStateSchema, { version: 7n }));
const huge = 64 * 1024 * 1024;
/** The version as an empty text. The library would read a number, 0. */
const otherType = Buffer.from([0x1a, 0x00]);

/** Answers every stream with these bytes, and says what a reader makes of them. */
async function readFrames(
  t: Parameters<typeof serveFrames>[0],
  bytes: readonly Uint8Array[],
  header: Record<string, string | number> = {},
) {
  const server = await serveFrames(t, (stream) => {
    stream.respond({ ...streamHeader, ...header });
    for (const each of bytes) stream.write(each);
    stream.end();
  });
  const { plane } = connectTo(t, server.url);
  const { states, error } = await readAll(plane.watch(kinds.deployment, 0n, never));
  return { versions: states.map(({ version }) => version), code: error?.code, error, server, plane };
}

describe("a stream", () => {
  test("that ends with its closing frame has ended", async (t) => {
    const { versions, code } = await readFrames(t, [envelope(0, state), endOfStream]);
    assert.deepEqual([versions, code], [[7n], undefined]);
  });

  test("that ends without it has failed, after what it brought", async (t) => {
    const { versions, code } = await readFrames(t, [envelope(0, state)]);
    assert.deepEqual([versions, code], [[7n], "internal"]);
  });

  test("with a field of another type has failed, without that message", async (t) => {
    const { versions, code } = await readFrames(t, [envelope(0, state), envelope(0, otherType)]);
    assert.deepEqual([versions, code], [[7n], "internal"]);
  });

  test("that is cut in the middle of a message has failed, without that message", async (t) => {
    const { versions, code } = await readFrames(t, [envelope(0, state), envelope(0, state).subarray(0, 6)]);
    assert.deepEqual([versions, code], [[7n], "internal"]);
  });

  test("whose connection dies in the middle of a message is unavailable, without that message", async (t) => {
    const proceed: () => void = () => undefined;
    const server = await serveFrames(t, (stream) => {
      stream.respond(streamHeader);
      stream.write(envelope(0, state));
      stream.write(envelope(0, state).subarray(0, 6));
      proceed();
    });
    const proxy = await startFaultProxy(t, server.port);
    const { plane } = connectTo(t, proxy.url);
    const versions: bigint[] = [];
    const error = await failureOf(
      (async () => {
        for await (const { version } of plane.watch(kinds.deployment, 0n, never)) {
          versions.push(version);
          proxy.cut();
        }
      })(),
    );
    proceed();
    assert.deepEqual([versions, error.code], [[7n], "unavailable"]);
  });

  test("with a message of 64 MiB is refused at its first five bytes", async (t) => {
    const server = await serveFrames(t, (stream) => {
      stream.respond(streamHeader);
      // Nothing follows: whoever waits for the message waits for ever.
      stream.write(envelope(0, Buffer.alloc(0), huge));
    });
    const { plane } = connectTo(t, server.url);
    const { error } = await readAll(plane.watch(kinds.deployment, 0n, never));
    assert.equal(error?.code, "resource_exhausted");
  });

  test("with a message that unpacks to 64 MiB is refused", async (t) => {
    const bomb = envelope(1, gzipSync(Buffer.alloc(huge)));
    const { versions, code } = await readFrames(t, [bomb, endOfStream], {
      "connect-content-encoding": "gzip",
    });
    assert.deepEqual([versions, code], [[], "resource_exhausted"]);
  });

  test("that is packed with gzip is read", async (t) => {
    const { versions, code } = await readFrames(t, [envelope(1, gzipSync(state)), endOfStream], {
      "connect-content-encoding": "gzip",
    });
    assert.deepEqual([versions, code], [[7n], undefined]);
  });

  test("brings a state of a kind that krane does not know as a state without one", async (t) => {
    // Field 15, a message, beside version 9: what a later kind of order would look like.
    const unknown = Buffer.from([0x7a, 0x02, 0x08, 0x01, 0x18, 0x09]);
    const { versions, code } = await readFrames(t, [envelope(0, unknown), endOfStream]);
    assert.deepEqual([versions, code], [[9n], undefined]);
  });

  test("with an error brings its code and the wait it asks for", async (t) => {
    const end = JSON.stringify({
      error: {
        code: "resource_exhausted",
        message: "too many agents",
        details: [{ type: "google.rpc.RetryInfo", value: "CgIIHg" }],
      },
    });
    const { error } = await readFrames(t, [envelope(2, Buffer.from(end))]);
    assert.deepEqual([error?.code, error?.retryAfterMs], ["resource_exhausted", 30_000]);
    assert.equal(error?.message, "WatchDeployments: resource_exhausted: too many agents");
  });

  test("of any bytes whatsoever ends, with a ControlPlaneError if at all, and harms nothing", async (t) => {
    let bytes: Uint8Array = new Uint8Array();
    const server = await serveFrames(t, (stream) => {
      stream.respond(streamHeader);
      stream.end(bytes);
    });
    const { plane } = connectTo(t, server.url);
    const framed = fc
      .tuple(fc.constantFrom(0, 1, 2, 3, 255), fc.uint8Array({ maxLength: 60 }))
      .map(([flags, body]) => envelope(flags, body));
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 60 }), framed), async (garbage) => {
        bytes = garbage;
        // readAll() refuses every other kind of error.
        const { error } = await readAll(plane.watch(kinds.deployment, 0n, never));
        assert.notEqual(error?.code, "not_found");
      }),
      { numRuns: 200 },
    );
    assert.equal(server.accepted, 1);
  });
});

interface PlainAnswer {
  readonly status: number;
  readonly header?: Record<string, string>;
  readonly body?: string;
}

function respondPlain(stream: ServerHttp2Stream, { status, header, body }: PlainAnswer): void {
  stream.respond({ ":status": status, "content-type": "text/html", ...header });
  stream.end(body ?? "<html>an error page</html>");
}

describe("a plain HTTP answer", () => {
  const json = { "content-type": "application/json" };
  const cases: readonly (readonly [string, PlainAnswer, string, number?])[] = [
    ["404 of a proxy is no word about the object", { status: 404 }, "unimplemented"],
    [
      "404 with JSON is none either",
      { status: 404, header: json, body: '{"message":"not found"}' },
      "unimplemented",
    ],
    ["401 is unauthenticated", { status: 401 }, "unauthenticated"],
    ["403 is permission_denied", { status: 403 }, "permission_denied"],
    [
      "429 is unavailable, with its hint",
      { status: 429, header: { "retry-after": "9" } },
      "unavailable",
      9_000,
    ],
    [
      "503 is unavailable, with its hint",
      { status: 503, header: { "retry-after": "2" } },
      "unavailable",
      2_000,
    ],
    ["502 is unavailable", { status: 502 }, "unavailable"],
    ["500 is unknown", { status: 500 }, "unknown"],
    ["301 is unknown", { status: 301, header: { location: "https://elsewhere.example" } }, "unknown"],
    ["200 with a page is unknown", { status: 200 }, "unknown"],
  ];
  for (const [name, answer, code, retryAfterMs] of cases)
    test(name, async (t) => {
      const server = await serveFrames(t, (stream) => respondPlain(stream, answer));
      const { plane } = connectTo(t, server.url);
      const unary = await failureOf(plane.get(kinds.deployment, { id: "d_1" }, never));
      const { error: streamed } = await readAll(plane.watch(kinds.deployment, 0n, never));
      for (const error of [unary, streamed]) {
        assert.deepEqual([error?.code, error?.retryAfterMs], [code, retryAfterMs]);
        assert.doesNotMatch(error?.message ?? "", /an error page/);
      }
      assert.equal(server.accepted, 1);
    });
});

describe("a unary answer", () => {
  const answers: readonly (readonly [string, (stream: ServerHttp2Stream) => void, string])[] = [
    [
      "that promises 64 MiB is refused before they come",
      (stream) => stream.respond({ ...unaryHeader, "content-length": huge }),
      "resource_exhausted",
    ],
    [
      "that is above the limit is not read to its end",
      (stream) => {
        stream.respond(unaryHeader);
        stream.write(Buffer.alloc(9 * 1024 * 1024));
      },
      "resource_exhausted",
    ],
    [
      "that unpacks to 64 MiB is refused",
      (stream) => {
        stream.respond({ ...unaryHeader, "content-encoding": "gzip" });
        stream.end(gzipSync(Buffer.alloc(huge)));
      },
      "resource_exhausted",
    ],
    [
      "that is no protobuf is an internal error",
      (stream) => {
        stream.respond(unaryHeader);
        stream.end(Buffer.from([0xff, 0xff, 0xff]));
      },
      "internal",
    ],
    [
      "with a field of another type is an internal error",
      (stream) => {
        stream.respond(unaryHeader);
        stream.end(otherType);
      },
      "internal",
    ],
    [
      "that is shorter than it said does not condemn the request",
      (stream) => {
        stream.respond({ ...unaryHeader, "content-length": 100 });
        stream.end(Buffer.from([0x18, 0x01]));
      },
      "unavailable",
    ],
    ["that is a reset does not condemn the request", (stream) => stream.close(8), "unavailable"],
  ];
  for (const [name, answer, code] of answers)
    test(name, async (t) => {
      const server = await serveFrames(t, answer);
      const { plane } = connectTo(t, server.url);
      assert.equal((await failureOf(plane.get(kinds.deployment, { id: "d_1" }, never))).code, code);
    });
});

describe("TLS", () => {
  const pem = (name: string) =>
    readFile(fileURLToPath(new URL(`../../../testdata/tls/${name}.pem`, import.meta.url)), "utf8");
  const pair = async (name: string) => ({ cert: await pem(`${name}.cert`), key: await pem(`${name}.key`) });

  test("is accepted with the CA that was given, and with no other", async (t) => {
    const first = await pair("first");
    const server = await serveRpc(t, { heartbeat: () => ({}) }, { tls: first });
    await connectTo(t, server.url, { ca: first.cert }).plane.heartbeat(never);
    for (const options of [{ ca: await pem("second.cert") }, {}]) {
      const error = await failureOf(connectTo(t, server.url, options).plane.heartbeat(never));
      assert.equal(error.code, "unavailable");
      assert.match(error.message, /certificate/);
    }
    assert.equal(server.accepted, 1);
  });

  test("is refused when the certificate is for another host", async (t) => {
    const first = await pair("first");
    const server = await serveRpc(t, { heartbeat: () => ({}) }, { tls: first, host: "127.0.0.2" });
    const error = await failureOf(connectTo(t, server.url, { ca: first.cert }).plane.heartbeat(never));
    assert.equal(error.code, "unavailable");
    assert.match(error.message, /127\.0\.0\.2/);
  });

  test("is never given up for plain text", async (t) => {
    let plainText = 0;
    const server = await serveFrames(t, () => void plainText++);
    const error = await failureOf(connectTo(t, server.url.replace("http:", "https:")).plane.heartbeat(never));
    assert.equal(error.code, "unavailable");
    assert.equal(plainText, 0);
  });
});
