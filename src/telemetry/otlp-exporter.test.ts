import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, createServer, request } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createLog } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { createExportWatch, createOtlpAgents } from "./otlp-exporter.ts";

test("destroying the agents ends pending requests, and new ones fail", async (t) => {
  let requests = 0;
  const server = createServer(() => {
    requests++;
    server.emit("arrived");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;

  const agents = createOtlpAgents({});
  const agent = await agents.forSignal("TRACES")("http:");
  assert.ok(agent instanceof Agent);
  const waiting = request({ host: "127.0.0.1", port, agent });
  const failed = once(waiting, "error");
  waiting.end();
  await once(server, "arrived");
  agents.destroy();
  const [error] = await failed;
  assert.equal(error.code, "ECONNRESET");
  assert.throws(() => request({ host: "127.0.0.1", port, agent }), /shut down/);
  assert.equal(requests, 1);
});

test("certificates come from the standard variables, the signal's own first, and a missing file is an error", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "krane-otlp-"));
  t.after(() => rm(folder, { recursive: true }));
  const files = {
    any: join(folder, "any.pem"),
    traces: join(folder, "traces.pem"),
    key: join(folder, "key.pem"),
  };
  for (const [name, path] of Object.entries(files)) await writeFile(path, name);
  const agents = createOtlpAgents({
    OTEL_EXPORTER_OTLP_CERTIFICATE: files.any,
    OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: files.traces,
    OTEL_EXPORTER_OTLP_CLIENT_KEY: files.key,
  });
  const options = async (signal: "TRACES" | "METRICS") => {
    const agent = await agents.forSignal(signal)("https:");
    assert.ok(agent instanceof HttpsAgent);
    const { ca, cert, key } = agent.options;
    return [ca, cert, key].map((file) => file?.toString());
  };
  assert.deepEqual(await options("TRACES"), ["traces", undefined, "key"]);
  assert.deepEqual(await options("METRICS"), ["any", undefined, "key"]);
  const missing = createOtlpAgents({ OTEL_EXPORTER_OTLP_CERTIFICATE: join(folder, "missing.pem") });
  await assert.rejects(async () => missing.forSignal("TRACES")("https:"), /missing\.pem/);
  agents.destroy();
});

test("a failing export is counted each time and logged once, as is its recovery, and nothing after the stop", async () => {
  const lines: string[] = [];
  const log = createLog(
    {
      level: "info",
      instance: { id: "i", region: "r", version: "v" },
      sampling: { rate: 1, slowThresholdMs: 1 },
    },
    {
      write: (line) => lines.push(JSON.parse(line).level),
      random: { next: () => 0 },
      clock: new FakeClock(),
    },
  );
  const metrics = createMetrics({ version: "1", revision: "r", nodeVersion: "v20" });
  const watch = createExportWatch(log, metrics.telemetryFailures);
  const exported = watch.forSignal("traces");
  exported(undefined);
  assert.deepEqual(lines, []);
  for (let n = 0; n < 3; n++) exported(new Error("down"));
  assert.deepEqual(lines, ["warn"]);
  exported(undefined);
  exported(undefined);
  assert.deepEqual(lines, ["warn", "info"]);
  watch.stop();
  exported(new Error("down"));
  assert.deepEqual(lines, ["warn", "info"]);
  const text = await metrics.render();
  assert.ok(text.includes('unkey_krane_telemetry_failures_total{signal="traces"} 3'), text);
});
