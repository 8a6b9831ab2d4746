import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createNetServer } from "node:net";
import { type TestContext, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createDocumentFetch } from "./document-fetch.ts";

const never = new AbortController().signal;
const limits = { timeoutMs: 1_000, bodyBytesMax: 1_000 };
const fetchDocument = createDocumentFetch(limits, { clock: new FakeClock() });

function portOf(server: Pick<Server, "address">): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : assert.fail("it does not listen");
}

async function serve(t: TestContext, listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { ip: "127.0.0.1", port: portOf(server) };
}

test("returns the document unchanged, from exactly the path", async (t) => {
  const seen: unknown[] = [];
  const address = await serve(t, ({ method, url, headers }, answer) => {
    seen.push([method, url, headers["accept-encoding"], headers["authorization"]]);
    answer.end('{"openapi":"3.1.0","title":"über"}');
  });
  const outcome = await fetchDocument({ ...address, path: "/a?b=%2F.." }, never);
  assert.deepEqual(outcome, { kind: "document", text: '{"openapi":"3.1.0","title":"über"}' });
  assert.deepEqual(seen, [["GET", "/a?b=%2F..", "identity", undefined]]);
});

test("redirects are not followed", async (t) => {
  let calls = 0;
  const address = await serve(t, (_, answer) => {
    calls += 1;
    answer.writeHead(302, { location: "/elsewhere" }).end();
  });
  assert.deepEqual(await fetchDocument({ ...address, path: "/" }, never), { kind: "refused", status: 302 });
  assert.equal(calls, 1);
});

test("a body is read up to the limit, whatever its content-length is", async (t) => {
  const address = await serve(t, ({ url }, answer) => {
    const size = Number(url?.slice(1));
    if (size < 10_000) answer.end("x".repeat(size));
    else for (let sent = 0; sent < 64 && !answer.destroyed; sent++) answer.write("x".repeat(16_384));
  });
  const sizeOf = async (size: number) => {
    const outcome = await fetchDocument({ ...address, path: `/${size}` }, never);
    return outcome.kind === "document" ? outcome.text.length : outcome.kind;
  };
  assert.deepEqual(
    [await sizeOf(0), await sizeOf(1_000), await sizeOf(1_001), await sizeOf(10_000)],
    [0, 1_000, "too-large", "too-large"],
  );
});

test("a body that is not text is rejected", async (t) => {
  const address = await serve(t, (_, answer) => void answer.end(Buffer.from([0xff, 0xfe, 0x00])));
  assert.deepEqual(await fetchDocument({ ...address, path: "/" }, never), { kind: "not-text" });
});

test("an instance that is down, disconnects or does not speak HTTP is a value", async (t) => {
  const gone = await serve(t, () => undefined);
  const server = createNetServer((socket) => void socket.end("220 smtp.example\r\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const broken = await serve(t, ({ socket }, answer) => {
    answer.writeHead(200, { "content-length": 10 });
    answer.write("x");
    setImmediate(() => socket.destroy());
  });
  const unused = createNetServer();
  await new Promise<void>((resolve) => unused.listen(0, "127.0.0.1", resolve));
  const closed = { ip: "127.0.0.1", port: portOf(unused) };
  await new Promise((resolve) => unused.close(resolve));
  for (const address of [closed, { ...gone, port: portOf(server) }, broken]) {
    const { kind } = await fetchDocument({ ...address, path: "/" }, never);
    assert.equal(kind, "unreachable");
  }
});

test("a silent instance times out, and an aborted call ends", async (t) => {
  const clock = new FakeClock();
  let reached: () => void = () => undefined;
  const arrival = () =>
    new Promise<void>((resolve) => {
      reached = resolve;
    });
  const address = await serve(t, () => reached());
  const fetchSlowly = createDocumentFetch(limits, { clock });
  let arrived = arrival();
  const late = fetchSlowly({ ...address, path: "/" }, never);
  await arrived;
  await clock.advance(1_000);
  assert.deepEqual(await late, { kind: "unreachable", reason: "no response within 1000 ms" });
  const caller = new AbortController();
  arrived = arrival();
  const given = fetchSlowly({ ...address, path: "/" }, caller.signal);
  const rejected = assert.rejects(given, (error) => error === caller.signal.reason);
  await arrived;
  caller.abort();
  await rejected;
  assert.equal(clock.timerCount, 0);
});
