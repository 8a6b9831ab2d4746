// The client on real sockets, with servers that misbehave: what arrives, what is refused, and that
// nothing stays open afterwards.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fixedCredential } from "../../../src/kube/credentials.ts";
import type { KubeApiError } from "../../../src/kube/errors.ts";
import { namespaces, pods, secrets } from "../../../src/kube/resources.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, connectTo, startStubApiServer, status } from "../../support/stub-api-server.ts";

const signal = new AbortController().signal;
const ref = { namespace: "default", name: "a" };

function pod(name: string, resourceVersion: string, note = "") {
  const metadata = { name, namespace: "default", uid: `uid-${name}`, resourceVersion, annotations: { note } };
  return { apiVersion: "v1", kind: "Pod", metadata };
}

function line(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function failsWith(code: string, status?: number) {
  return (error: KubeApiError) => error.code === code && (status === undefined || error.status === status);
}

async function certificate(name: string) {
  const read = (file: string) =>
    readFile(fileURLToPath(new URL(`../../../testdata/tls/${file}`, import.meta.url)), "utf8");
  return { cert: await read(`${name}.cert.pem`), key: await read(`${name}.key.pem`) };
}

test("requests one after the other use their connections again", async (t) => {
  const server = await startStubApiServer(t, (_, response) => answerJson(response, 200, pod("a", "1")));
  const { api } = connectTo(t, server);
  for (let count = 0; count < 50; count++) await api.get(pods, ref, {}, signal);
  assert.ok(server.opened() <= 2, `${server.opened()} connections`);
});

test("no more requests are in flight than there are connections", async (t) => {
  let inFlight = 0;
  let most = 0;
  const waiting: (() => void)[] = [];
  const server = await startStubApiServer(t, (_, response) => {
    most = Math.max(most, ++inFlight);
    waiting.push(() => {
      inFlight -= 1;
      answerJson(response, 200, pod("a", "1"));
    });
    if (waiting.length === 2) for (const answer of waiting.splice(0)) answer();
  });
  const { api } = connectTo(t, server, { connections: 2 });
  await Promise.all(Array.from({ length: 10 }, () => api.get(pods, ref, {}, signal)));
  assert.equal(most, 2);
});

test("watch lines may be split anywhere, also inside a character", async (t) => {
  const bytes = Buffer.from(
    [
      line("ADDED", pod("a", "1", "Grüße 🦩")),
      line("MODIFIED", pod("a", "2")),
      line("DELETED", pod("a", "3")),
    ].join(""),
  );
  const server = await startStubApiServer(t, async (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    for (const byte of bytes) {
      response.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  });
  const { api } = connectTo(t, server);
  const seen: unknown[] = [];
  for await (const event of api.watch(pods, {}, signal)) {
    if (event.type !== "BOOKMARK") seen.push([event.type, event.object.metadata?.annotations?.["note"]]);
  }
  assert.deepEqual(seen, [
    ["ADDED", "Grüße 🦩"],
    ["MODIFIED", ""],
    ["DELETED", ""],
  ]);
});

test("a line of 10 MiB arrives whole, one above the limit is refused", async (t) => {
  const note = "x".repeat(10 * 2 ** 20);
  const server = await startStubApiServer(
    t,
    (_, response) => void response.end(line("ADDED", pod("a", "1", note))),
  );
  const { api } = connectTo(t, server);
  for await (const event of api.watch(pods, {}, signal)) {
    assert.ok(event.type === "ADDED");
    assert.equal(event.object.metadata?.annotations?.["note"]?.length, note.length);
  }
  const strict = connectTo(t, server, { watchLineBytesMax: 2 ** 20 });
  await assert.rejects(
    strict.api.watch(pods, {}, signal)[Symbol.asyncIterator]().next(),
    failsWith("too-large"),
  );
});

test("a watch that is cut inside a line, or is no JSON, fails after the events before it", async (t) => {
  const tails = { network: '{"type":"MODIF', malformed: "<html>oops</html>\n" };
  for (const [code, tail] of Object.entries(tails)) {
    const server = await startStubApiServer(
      t,
      (_, response) => void response.end(line("ADDED", pod("a", "1")) + tail),
    );
    const { api } = connectTo(t, server);
    const events = api.watch(pods, {}, signal)[Symbol.asyncIterator]();
    assert.equal((await events.next()).value?.type, "ADDED");
    await assert.rejects(events.next(), failsWith(code));
  }
});

test("a connection that breaks inside a chunk is a network error", async (t) => {
  const server = await startStubApiServer(t, (_, response) => {
    response.write(line("ADDED", pod("a", "1")), () => response.socket?.destroy());
  });
  const { api } = connectTo(t, server);
  const events = api.watch(pods, {}, signal)[Symbol.asyncIterator]();
  await events.next();
  await assert.rejects(events.next(), failsWith("network"));
});

test("a silent watch ends with a timeout", async (t) => {
  const server = await startStubApiServer(
    t,
    (_, response) => void response.write(line("ADDED", pod("a", "1"))),
  );
  const { api } = connectTo(t, server, { watchSilenceMs: 1_000 });
  const events = api.watch(pods, {}, signal)[Symbol.asyncIterator]();
  await events.next();
  await assert.rejects(events.next(), failsWith("timeout"));
});

test("a watch takes no connection of the pool, and its own is gone when it is left or aborted", async (t) => {
  const server = await startStubApiServer(t, (request, response) => {
    if (request.url?.includes("watch=true")) response.write(line("ADDED", pod("a", "1")));
    else answerJson(response, 200, pod("a", "1"));
  });
  const { api } = connectTo(t, server, { connections: 1 });
  const left = api.watch(pods, {}, signal)[Symbol.asyncIterator]();
  const stop = new AbortController();
  const aborted = api.watch(pods, {}, stop.signal)[Symbol.asyncIterator]();
  await Promise.all([left.next(), aborted.next()]);
  await api.get(pods, ref, {}, signal);
  assert.equal(await server.connectionCount(), 3);

  const reason = new Error("enough");
  const next = aborted.next();
  stop.abort(reason);
  await assert.rejects(next, reason);
  await left.return?.();
  await eventually("only the pool's connection is left", async () =>
    assert.equal(await server.connectionCount(), 1),
  );
});

test("a refused watch says why, and its connection is gone", async (t) => {
  const server = await startStubApiServer(t, (_, response) =>
    answerJson(response, 403, status(403, "Forbidden")),
  );
  const { api } = connectTo(t, server);
  await assert.rejects(api.watch(pods, {}, signal)[Symbol.asyncIterator]().next(), failsWith("refused", 403));
  await eventually("no connection is left", async () => assert.equal(await server.connectionCount(), 0));
});

test("a reset before the answer is retried once for a GET and never for a write", async (t) => {
  let resets = 0;
  const server = await startStubApiServer(t, (request, response) => {
    if (resets-- > 0) request.socket.destroy();
    else answerJson(response, 200, pod("a", "1"));
  });
  const { api } = connectTo(t, server);
  resets = 1;
  assert.equal((await api.get(pods, ref, {}, signal))?.metadata?.name, "a");
  resets = 2;
  await assert.rejects(api.get(pods, ref, {}, signal), failsWith("network"));
  resets = 1;
  const applied = api.apply(pods, { metadata: ref }, { fieldManager: "krane", force: false }, signal);
  await assert.rejects(applied, failsWith("network"));
  assert.equal(server.requests.filter((request) => request.method === "PATCH").length, 1);
});

test("an answer above its limit is refused without reading it to the end", async (t) => {
  let written = 0;
  const server = await startStubApiServer(t, async (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const chunk = Buffer.alloc(2 ** 20, " ");
    while (!response.destroyed && written < 1_000) {
      written += 1;
      if (!response.write(chunk))
        await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
    }
  });
  const { api } = connectTo(t, server, { answerBytesMax: 3 * 2 ** 20 });
  await assert.rejects(api.get(pods, ref, {}, signal), failsWith("too-large"));
  assert.ok(written < 100, `${written} MiB were written`);
});

test("a truncated answer is a network error; one that is no JSON is malformed, and is not quoted", async (t) => {
  const answers = { network: '{"kind":"Po', malformed: '{"data":{"password":hunter2' };
  const server = await startStubApiServer(t, (request, response) => {
    const kind = request.url?.endsWith("network") ? "network" : "malformed";
    response.writeHead(200, { "content-type": "application/json" });
    response.write(answers[kind], () => (kind === "network" ? response.socket?.destroy() : response.end()));
  });
  const { api } = connectTo(t, server);
  await assert.rejects(
    api.get(secrets, { namespace: "default", name: "network" }, {}, signal),
    failsWith("network"),
  );
  await assert.rejects(
    api.get(secrets, { namespace: "default", name: "malformed" }, {}, signal),
    (error: Error) => {
      assert.ok(failsWith("malformed")(error as KubeApiError));
      assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`, /hunter2/);
      return true;
    },
  );
});

test("a server that does not answer ends in a timeout, an abort in its own reason", async (t) => {
  const server = await startStubApiServer(t, () => undefined);
  const { api } = connectTo(t, server, { requestTimeoutMs: 200 });
  await assert.rejects(api.get(pods, ref, {}, signal), failsWith("timeout"));
  await assert.rejects(api.watch(pods, {}, signal)[Symbol.asyncIterator]().next(), failsWith("timeout"));
  const reason = new Error("enough");
  const stop = new AbortController();
  const asked = api.get(pods, ref, {}, stop.signal);
  stop.abort(reason);
  await assert.rejects(asked, reason);
});

test("a refused connection is a network error", async (t) => {
  const server = await startStubApiServer(t, () => undefined);
  const { api } = connectTo(t, server, { endpoint: { server: "http://127.0.0.1:9" } });
  await assert.rejects(api.get(pods, ref, {}, signal), failsWith("network"));
});

test("a 500 with a page of a proxy keeps its status and its retry hint", async (t) => {
  const server = await startStubApiServer(t, (_, response) => {
    response.writeHead(503, { "content-type": "text/html", "retry-after": "7" }).end("<h1>Busy</h1>");
  });
  const { api } = connectTo(t, server);
  await assert.rejects(api.list(pods, {}, signal), (error: KubeApiError) => {
    assert.equal(error.status, 503);
    assert.equal(error.retryAfterMs, 7_000);
    return true;
  });
});

test("a refusal that repeats our credential is told without it, as a page, as a Status and of a watch", async (t) => {
  const authorization = "Bearer a.token.of-ours";
  const server = await startStubApiServer(t, (request, response) => {
    const message = `no entry with ${request.headers.authorization}`;
    if (request.url?.includes("/secrets")) response.writeHead(407).end(message);
    else answerJson(response, 403, { ...status(403, "Forbidden"), message });
  });
  const { api } = connectTo(t, server, {
    endpoint: { server: server.url, credentials: fixedCredential({ authorization }) },
  });
  const isClean = (error: KubeApiError) => /no entry with Bearer \[redacted\]/.test(error.message);
  await assert.rejects(api.get(secrets, ref, {}, signal), isClean);
  await assert.rejects(api.get(pods, ref, {}, signal), isClean);
  await assert.rejects(api.watch(pods, {}, signal)[Symbol.asyncIterator]().next(), isClean);
});

test("names that would leave their place in the URL are never sent; selectors are escaped", async (t) => {
  const server = await startStubApiServer(t, (_, response) =>
    answerJson(response, 200, { metadata: { resourceVersion: "1" }, items: [] }),
  );
  const { api } = connectTo(t, server, { endpoint: { server: `${server.url}/prefix/` } });
  for (const name of ["..", ".", "a/b", "%2e%2e", "a?b", "a#b", "", "x".repeat(300), "a b", "a\r\nb", "ä"]) {
    await assert.rejects(
      api.get(pods, { namespace: "default", name }, {}, signal),
      failsWith("invalid-name"),
    );
    await assert.rejects(
      api.get(pods, { namespace: name, name: "a" }, {}, signal),
      failsWith("invalid-name"),
    );
    await assert.rejects(api.delete(namespaces, { name }, {}, signal), failsWith("invalid-name"));
  }
  assert.equal(server.requests.length, 0);
  await api.list(pods, { labelSelector: "a=b&watch=true#/../" }, signal);
  assert.deepEqual(
    server.requests.map((request) => request.url),
    ["/prefix/api/v1/pods?labelSelector=a%3Db%26watch%3Dtrue%23%2F..%2F"],
  );
});

test("the server is known by its CA, and we by our certificate; a new certificate takes new connections", async (t) => {
  const first = await certificate("first");
  const second = await certificate("second");
  const shown: string[] = [];
  const server = await startStubApiServer(
    t,
    (request, response) => {
      const socket = request.socket as import("node:tls").TLSSocket;
      shown.push(String(socket.getPeerCertificate().subject?.CN));
      answerJson(response, 200, pod("a", "1"));
    },
    { ...first, requestCert: true, rejectUnauthorized: true, ca: [first.cert, second.cert] },
  );
  let current = { certificate: first };
  const credentials = { current: async () => current, renew: async () => current };
  const { api } = connectTo(t, server, { endpoint: { ca: first.cert, credentials } });
  await api.get(pods, ref, {}, signal);
  current = { certificate: second };
  await api.get(pods, ref, {}, signal);
  await api.get(pods, ref, {}, signal);
  assert.equal(new Set(shown).size, 2);
  assert.equal(shown[1], shown[2]);

  const stranger = connectTo(t, server, { endpoint: { ca: second.cert, credentials } });
  await assert.rejects(stranger.api.get(pods, ref, {}, signal), failsWith("network"));
  const unchecked = connectTo(t, server, {
    endpoint: { ca: second.cert, credentials, insecureSkipTlsVerify: true },
  });
  assert.equal((await unchecked.api.get(pods, ref, {}, signal))?.metadata?.name, "a");
});

test("a certificate that is broken for a moment is named, and harms nothing once it is whole again", async (t) => {
  const first = await certificate("first");
  const second = await certificate("second");
  const server = await startStubApiServer(t, (_, response) => answerJson(response, 200, pod("a", "1")), {
    ...first,
    requestCert: true,
    rejectUnauthorized: true,
    ca: [first.cert],
  });
  let current = { certificate: first };
  const credentials = { current: async () => current, renew: async () => current };
  const { api } = connectTo(t, server, { endpoint: { ca: first.cert, credentials } });
  await api.get(pods, ref, {}, signal);
  for (const broken of [
    { ...first, cert: first.cert.slice(0, 300) },
    { ...first, cert: second.cert },
  ]) {
    current = { certificate: broken };
    await assert.rejects(api.get(pods, ref, {}, signal), failsWith("credentials"));
    await assert.rejects(async () => {
      for await (const _ of api.watch(pods, {}, signal)) assert.fail("it was watched");
    }, failsWith("credentials"));
    current = { certificate: first };
    assert.equal((await api.get(pods, ref, {}, signal))?.metadata?.name, "a");
  }
});
