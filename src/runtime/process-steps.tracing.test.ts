import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { at, fields, hex, pairOf, spansOf, text } from "../../test/support/otlp-spans.ts";
import type { Log } from "../telemetry/log.ts";
import type { LogFields } from "../telemetry/log-fields.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { SpanDefinition } from "../telemetry/span-catalogue.ts";
import { createNoTracing } from "../telemetry/spans.ts";
import { startTracing, type TracingDeps } from "./process-steps.ts";

const service = {
  namespace: "unkey",
  name: "krane",
  version: "1.2.3",
  instanceId: "ins_1",
  region: "us-east-1.aws",
};

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A collector on loopback that the environment points to, as the exporters read it, until the test ends. */
async function startCollector(t: TestContext, answer: (response: ServerResponse) => void) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      // An exporter that is shut down cuts off its current request.
      return;
    }
    received.push({
      path: request.url ?? "",
      headers: request.headers,
      body: gunzipSync(Buffer.concat(chunks)),
    });
    server.emit("received");
    answer(response);
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  useEnvironment(t, { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` });
  async function close() {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
  t.after(() => (server.listening ? close() : undefined));
  return {
    received,
    close,
    async arrived(count: number) {
      while (received.length < count) await once(server, "received");
    },
    async disconnected() {
      for (const socket of sockets) await once(socket, "close");
    },
    bodyOf: (path: string) => received.find((request) => request.path === path)?.body ?? Buffer.alloc(0),
  };
}

const ok = (response: ServerResponse) => void response.end();
const silence = () => undefined;

function useEnvironment(t: TestContext, variables: Record<string, string>): void {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  t.after(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
}

function createFixture(env: Record<string, string> = {}) {
  const clock = new FakeClock();
  const said: { level: string; message: string; fields: LogFields | undefined }[] = [];
  const say = (level: string) => (message: string, fields?: LogFields) =>
    void said.push({ level, message, fields });
  const log: Log = {
    debug: say("debug"),
    info: say("info"),
    warn: say("warn"),
    error: say("error"),
    event: say("event"),
    child: () => log,
    dropped: 0,
  };
  const metrics = createMetrics({ version: "1.2.3", revision: "abc", nodeVersion: process.version });
  return { clock, said, metrics, deps: { clock, log, env } };
}

async function failuresOf(metrics: Metrics, signal: string): Promise<number> {
  const found = (await metrics.snapshot()).find(
    ({ name }) => name === "unkey_krane_telemetry_failures_total",
  );
  assert.ok(found && found.type === "counter");
  return found.points.find(({ labels }) => labels["signal"] === signal)?.value ?? 0;
}

/** A span of the test itself, inside the current span. */
const step = {
  name: "step",
  subject: "letter",
  kind: "internal",
  isRoot: false,
  meaning: "",
  attributes: { header: "", attempt: "", letter: "" },
} as const satisfies SpanDefinition;
const root = { ...step, name: "root", isRoot: true } as const;

const plain = (subject: string) => ({ subject, attributes: {} });

async function startSpans(sampleRate: number, deps: TracingDeps) {
  const { spans, shutdown } = await startTracing({ sampleRate, service }, deps);
  return { withSpan: (spans ?? assert.fail("there are no spans")).withSpan, shutdown };
}

test("spans arrive compressed, nested as they were started, and with the resource of this instance", async (t) => {
  const collector = await startCollector(t, ok);
  const { deps } = createFixture();
  const tracing = await startSpans(1, deps);
  const results = await Promise.all(
    ["a", "b"].map((letter) =>
      tracing.withSpan(root, { subject: letter, attributes: { attempt: 1, letter } }, async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return tracing.withSpan(step, plain(letter), () => letter);
      }),
    ),
  );
  assert.deepEqual(results, ["a", "b"]);
  await tracing.shutdown();

  assert.deepEqual(
    collector.received.map(({ path }) => path),
    ["/v1/traces"],
  );
  assert.equal(collector.received[0]?.headers["content-type"], "application/x-protobuf");
  assert.equal(collector.received[0]?.headers["content-encoding"], "gzip");
  const body = collector.bodyOf("/v1/traces");
  const spans = new Map(spansOf(body).map((span) => [span.name, span]));
  assert.deepEqual([...spans.keys()].sort(), ["root a", "root b", "step a", "step b"]);
  for (const letter of ["a", "b"]) {
    const [outer, inner] = [spans.get(`root ${letter}`), spans.get(`step ${letter}`)];
    assert.equal(outer?.parentId, "");
    assert.equal(inner?.parentId, outer?.spanId);
    assert.equal(inner?.traceId, outer?.traceId);
  }
  assert.notEqual(spans.get("root a")?.traceId, spans.get("root b")?.traceId);

  assert.deepEqual(spans.get("root a")?.attributes, { attempt: "1", letter: "a" });

  // Resource = 1, attributes = 1.
  assert.deepEqual(Object.fromEntries(at(body, 1, 1, 1).map(pairOf)), {
    "service.namespace": "unkey",
    "service.name": "krane",
    "service.version": "1.2.3",
    "service.instance.id": "ins_1",
    "cloud.region": "us-east-1.aws",
  });
});

test("an error passes through a span unchanged, and is exported by type and code, without its message", async (t) => {
  const collector = await startCollector(t, ok);
  const { deps } = createFixture();
  const tracing = await startSpans(1, deps);
  const failure = Object.assign(new RangeError("no entry with CANARY"), { code: "E_ENTRY" });
  const attributes = { header: "authorization: CANARY" };
  await assert.rejects(
    tracing.withSpan(step, { subject: "call", attributes }, () => {
      throw failure;
    }),
    (error) => error === failure,
  );
  await tracing.withSpan(step, plain("answer"), (span) => span.fail("409"));
  await tracing.withSpan(step, plain("good"), () => undefined);
  await tracing.shutdown();
  const body = collector.bodyOf("/v1/traces");
  assert.ok(!body.toString("latin1").includes("CANARY"));
  assert.deepEqual(
    spansOf(body).map(({ name, failure: noted }) => [name, noted]),
    [
      ["step call", "RangeError E_ENTRY"],
      ["step answer", "409"],
      ["step good", undefined],
    ],
  );
});

test("a span that has ended takes no children, and a root span has no parent", async (t) => {
  const collector = await startCollector(t, ok);
  const { deps } = createFixture();
  const tracing = await startSpans(1, deps);
  const late: Promise<unknown>[] = [];
  await tracing.withSpan(root, plain("first"), async () => {
    await tracing.withSpan(root, plain("second"), () => undefined);
    const ended = new Promise((resolve) => setImmediate(resolve));
    late.push(ended.then(() => tracing.withSpan(step, plain("late"), () => undefined)));
  });
  await Promise.all(late);
  await tracing.shutdown();
  const spans = spansOf(collector.bodyOf("/v1/traces"));
  assert.deepEqual(
    spans.map(({ name, parentId }) => [name, parentId]),
    [
      ["root second", ""],
      ["root first", ""],
      ["step late", ""],
    ],
  );
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 3);
});

test("a caller's trace is continued, unless the caller does not sample it or its header is invalid", async (t) => {
  const collector = await startCollector(t, ok);
  const { deps } = createFixture();
  const tracing = await startSpans(1, deps);
  const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
  const continued = (traceparent: string) =>
    tracing.withSpan(root, { ...plain("x"), traceparent }, (span) => span.traceparent);
  const zeros = "0".repeat(32);
  assert.match(await continued(`00-${traceId}-${spanId}-01`), new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
  assert.match(await continued(`00-${traceId}-${spanId}-00`), new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
  for (const bad of [
    "",
    "x",
    `00-${zeros}-${spanId}-01`,
    `00-${traceId}-${zeros.slice(16)}-01`,
    `00-${traceId}-01`,
  ])
    assert.doesNotMatch(await continued(bad), new RegExp(`${traceId}|${zeros}`));
  await tracing.shutdown();
  const spans = spansOf(collector.bodyOf("/v1/traces"));
  assert.deepEqual(
    spans.map((span) => [span.parentId, span.traceId === traceId]),
    [[spanId, true], ...Array.from({ length: 5 }, () => ["", false])],
  );
});

test("a caller that samples its trace does not make krane sample more than its rate", async (t) => {
  await startCollector(t, ok);
  const { deps } = createFixture();
  const tracing = await startSpans(0.01, deps);
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const start = { ...plain("x"), traceparent };
  assert.match(await tracing.withSpan(root, start, (span) => span.traceparent), /-00$/);
  await tracing.shutdown();
});

test("with a sample rate of 0 tracing is off, and no spans are sent", async (t) => {
  const collector = await startCollector(t, ok);
  const { deps } = createFixture();
  const tracing = await startTracing({ sampleRate: 0, service }, deps);
  assert.equal(tracing.spans, undefined);
  await tracing.shutdown();
  assert.equal(collector.received.length, 0);
});

test("a ratio samples whole traces: a child span is sent exactly if its parent is", async (t) => {
  const collector = await startCollector(t, ok);
  const { deps } = createFixture();
  const tracing = await startSpans(0.5, deps);
  for (let n = 0; n < 200; n++)
    await tracing.withSpan(root, plain(`${n}`), () => tracing.withSpan(step, plain(`${n}`), () => n));
  await tracing.shutdown();
  const names = collector.received.flatMap(({ body }) => spansOf(body).map(({ name }) => name));
  const outer = names.filter((name) => name.startsWith("root")).map((name) => name.slice(5));
  const inner = names.filter((name) => name.startsWith("step")).map((name) => name.slice(5));
  assert.deepEqual(outer.sort(), inner.sort());
  // Both ends are less likely than one in 10^40.
  assert.ok(outer.length > 10 && outer.length < 190, String(outer.length));
});

test("metrics are pushed with the same names and values as on the endpoint", async (t) => {
  const collector = await startCollector(t, ok);
  const { deps, metrics } = createFixture();
  const tracing = await startTracing({ sampleRate: 1, service, metrics }, deps);
  metrics.controlPlaneReconnects.inc({ controller: "sentinels" }, 3);
  metrics.resyncDuration.observe({ controller: "cilium" }, 0.3);
  await tracing.shutdown();

  // ExportMetricsServiceRequest: resource_metrics = 1, scope_metrics = 2, metrics = 2; in a metric name = 1,
  // gauge = 5, sum = 7, histogram = 9, of which data_points = 1.
  const pushed = new Map(
    at(collector.bodyOf("/v1/metrics"), 1, 2, 2).map((metric) => [text(fields(metric, 1)[0]), metric]),
  );
  const withValues = (await metrics.snapshot())
    .filter(({ points }) => points.length > 0)
    .map(({ name }) => name);
  assert.deepEqual([...pushed.keys()].sort(), withValues.sort());

  const [sum] = at(pushed.get("unkey_krane_controlplane_reconnects_total") ?? new Uint8Array(), 7);
  assert.ok(sum);
  // aggregation_temporality = 2 is cumulative (2), is_monotonic = 3 is true; the value is a double in the point.
  assert.match(hex(sum), /10021801$/);
  assert.ok(hex(fields(sum, 1)[0]).includes(hex(new Uint8Array(new Float64Array([3]).buffer))));
  const [point] = at(pushed.get("unkey_krane_resync_duration_seconds") ?? new Uint8Array(), 9, 1);
  assert.ok(point);
  // bucket_counts = 6 are 18 packed fixed64, explicit_bounds = 7 are 17 packed doubles.
  assert.equal(fields(point, 6)[0]?.length, 18 * 8);
  assert.equal(fields(point, 7)[0]?.length, 17 * 8);
  assert.equal(fields(pushed.get("unkey_build_info") ?? new Uint8Array(), 5).length, 1);
});

test("the standard variables switch off traces, metrics or both", async (t) => {
  const collector = await startCollector(t, ok);
  const paths = async (env: Record<string, string>) => {
    const { deps, metrics } = createFixture(env);
    const tracing = await startTracing({ sampleRate: 1, service, metrics }, deps);
    await tracing.spans?.withSpan(step, plain("x"), () => undefined);
    await tracing.shutdown();
    return collector.received.splice(0).map(({ path }) => path);
  };
  assert.deepEqual((await paths({})).sort(), ["/v1/metrics", "/v1/traces"]);
  assert.deepEqual(await paths({ OTEL_TRACES_EXPORTER: "none" }), ["/v1/metrics"]);
  assert.deepEqual(await paths({ OTEL_METRICS_EXPORTER: "none" }), ["/v1/traces"]);
  assert.deepEqual(await paths({ OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }), []);
  assert.deepEqual(await paths({ OTEL_SDK_DISABLED: "true" }), []);
});

test("an invalid address is logged once, by the name of its variable and without its value", async (t) => {
  await startCollector(t, ok);
  const warnings = async (env: Record<string, string>) => {
    const { deps, said } = createFixture(env);
    await (await startTracing({ sampleRate: 1, service }, deps)).shutdown();
    return said.map(({ level, message }) => `${level} ${message}`);
  };
  const ignored = "is not an http:// or https:// address; ignoring it";
  for (const bad of ["notaurl", "collector:4318", "http://", "unix:///run/otel"])
    assert.deepEqual(await warnings({ OTEL_EXPORTER_OTLP_ENDPOINT: bad }), [
      `warn OTEL_EXPORTER_OTLP_ENDPOINT ${ignored}`,
    ]);
  assert.deepEqual(await warnings({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "x" }), [
    `warn OTEL_EXPORTER_OTLP_METRICS_ENDPOINT ${ignored}`,
  ]);
  for (const good of ["", " ", "http://collector:4318", "HTTPS://collector/otlp"])
    assert.deepEqual(await warnings({ OTEL_EXPORTER_OTLP_ENDPOINT: good }), []);
});

test("a collector that never responds delays shutdown by a fixed time and nothing else", {
  timeout: 30_000,
}, async (t) => {
  useEnvironment(t, { OTEL_EXPORTER_OTLP_TIMEOUT: "600000" });
  const collector = await startCollector(t, silence);
  const { clock, deps, metrics, said } = createFixture();
  const tracing = await startTracing({ sampleRate: 1, service, metrics }, deps);
  for (let n = 0; n < 5000; n++) assert.equal(await tracing.spans?.withSpan(step, plain("x"), () => n), n);
  const stopped = tracing.shutdown();
  assert.equal(tracing.shutdown(), stopped);
  await collector.arrived(2);
  assert.equal(clock.timerCount, 1);
  await clock.advance(3000);
  await stopped;
  assert.deepEqual(
    said.map(({ level, fields }) => [level, fields?.timeoutMs]),
    [["warn", 3000]],
  );
  await collector.disconnected();
  assert.equal(await tracing.spans?.withSpan(step, plain("after"), () => 7), 7);
});

test("a collector that refuses connections delays shutdown by a fixed time, and is counted and logged once", async (t) => {
  useEnvironment(t, { OTEL_EXPORTER_OTLP_TIMEOUT: "500" });
  const collector = await startCollector(t, ok);
  await collector.close();
  const { clock, deps, metrics, said } = createFixture();
  const tracing = await startTracing({ sampleRate: 1, service, metrics }, deps);
  for (let n = 0; n < 600; n++) await tracing.spans?.withSpan(step, plain("x"), () => n);
  await tracing.shutdown();
  assert.equal(clock.timerCount, 0);
  assert.ok((await failuresOf(metrics, "traces")) >= 1);
  assert.ok((await failuresOf(metrics, "metrics")) >= 1);
  assert.deepEqual(said.map(({ level, fields }) => [level, fields?.signal]).sort(), [
    ["warn", "metrics"],
    ["warn", "traces"],
  ]);
});

test("a collector that responds with errors fails nothing", async (t) => {
  await startCollector(t, (response) => void response.writeHead(400).end("no"));
  const { clock, deps, metrics } = createFixture();
  const tracing = await startTracing({ sampleRate: 1, service, metrics }, deps);
  assert.equal(await tracing.spans?.withSpan(step, plain("x"), () => 7), 7);
  await tracing.shutdown();
  assert.equal(clock.timerCount, 0);
  assert.equal(await failuresOf(metrics, "traces"), 1);
});

test("without tracing there are no spans", async () => {
  const tracing = createNoTracing();
  assert.equal(tracing.spans, undefined);
  await tracing.shutdown();
});

test("the OpenTelemetry SDK is loaded only when tracing is on, and prints nothing and leaves nothing running", async () => {
  const folder = new URL("../telemetry/", import.meta.url).href;
  const program = `
    import { createRequire } from "node:module";
    const loaded = () => Object.keys(createRequire("${folder}").cache)
      .map((path) => /@opentelemetry[/\\\\]([^/\\\\]+)/.exec(path)?.[1]).filter((name) => name && name !== "api");
    const { createLog } = await import("${folder}log.ts");
    const { createMetrics } = await import("${folder}metrics.ts");
    const { createNoTracing } = await import("${folder}spans.ts");
    const { startTracing } = await import("${folder}../runtime/process-steps.ts");
    const { createSystemClock } = await import("${folder}../concurrency/clock.ts");
    const log = createLog(
      { level: "info", instance: { id: "i", region: "r", version: "v" }, sampling: { rate: 1, slowThresholdMs: 1 } },
      { write: () => undefined, random: { next: () => 0 }, clock: createSystemClock() },
    );
    const metrics = createMetrics({ version: "1", revision: "r", nodeVersion: process.version });
    const deps = { clock: createSystemClock(), log, env: {} };
    const service = ${JSON.stringify(service)};
    createNoTracing();
    await startTracing({ sampleRate: 1, service, metrics }, { ...deps, env: { OTEL_SDK_DISABLED: "true" } });
    const off = new Set(loaded()).size;
    const tracing = await startTracing({ sampleRate: 1, service, metrics }, deps);
    await tracing.spans.withSpan(${JSON.stringify(step)}, { subject: "x", attributes: {} }, () => 7);
    console.log(JSON.stringify({ off, on: [...new Set(loaded())].includes("sdk-trace") }));
  `;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", "--input-type=module", "-e", program],
    // A port on which nothing listens, and a value that OpenTelemetry warns about.
    {
      env: {
        ...process.env,
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_TIMEOUT: "x",
      },
    },
  );
  assert.deepEqual([JSON.parse(stdout), stderr], [{ off: 0, on: true }, ""]);
});
