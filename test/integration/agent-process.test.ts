// The program as it ships: the bundle, real signals, real exit codes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { open, readFile, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually } from "../support/eventually.ts";
import { fetchHttp1, fetchHttp2 } from "../support/http-clients.ts";
import { buildKrane, type KraneProcess, startKrane, writeConfig } from "../support/krane-process.ts";
import { kubeconfigFor, type ServedCluster, serveCluster } from "../support/served-cluster.ts";

let program = "";
let removeBundle: () => Promise<void> = async () => undefined;
let cluster: ServedCluster;

before(async () => {
  cluster = await serveCluster();
  ({ program, remove: removeBundle } = await buildKrane());
});
after(async () => {
  await removeBundle();
  await cluster.stop();
});

/** A configuration of an agent that can start: there is a cluster, and no control plane. */
async function writeAgentConfig(t: TestContext, more = "") {
  const config = await writeConfig(t, more);
  const kubeconfig = join(config.folder, "kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfig);
  return { ...config, args: ["agent", "--config", config.path, "--kubernetes-kubeconfig", kubeconfig] };
}

async function startedAgent(t: TestContext, more = "", env: Readonly<Record<string, string>> = {}) {
  const config = await writeAgentConfig(t, more);
  const agent = startKrane(t, program, config.args, env);
  const url = `http://127.0.0.1:${config.rpcPort}`;
  await untilStarted(agent, `${url}/health/startup`);
  return { ...config, ...agent, url, metricsUrl: `http://127.0.0.1:${config.metricsPort}/metrics` };
}

/** Fails with what the process said when it ends instead. */
async function untilStarted({ exit }: KraneProcess, url: string, ca?: string): Promise<void> {
  const gaveUp = new AbortController();
  const died = exit.then(({ code, stderr }) => {
    gaveUp.abort();
    throw new Error(`krane exited with ${code}: ${stderr}`);
  });
  const started = eventually(
    "krane has started",
    async () => assert.equal((await fetchHttp1(url, ca === undefined ? {} : { ca })).status, 200),
    { signal: gaveUp.signal },
  );
  await Promise.race([started, died]);
  died.catch(() => undefined);
}

describe("krane agent", () => {
  test("serves health over both versions of HTTP and metrics, and SIGTERM and SIGINT end it with 0", async (t) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      const agent = await startedAgent(t);
      for (const fetched of [fetchHttp1, fetchHttp2]) {
        const ready = await fetched(`${agent.url}/health/ready`);
        assert.equal(ready.status, 200);
        assert.equal(JSON.parse(ready.body).checks.kubernetes, "ok");
      }
      const metrics = await fetchHttp1(agent.metricsUrl);
      assert.equal(metrics.status, 200);
      assert.match(metrics.headers["content-type"] ?? "", /^text\/plain/);
      assert.match(metrics.body, /^process_resident_memory_bytes \d+/m);
      assert.equal((await fetchHttp1(agent.metricsUrl, { method: "POST" })).status, 405);
      agent.child.kill(signal);
      const { code, stderr } = await agent.exit;
      assert.deepEqual([code, stderr], [0, ""]);
      for (const url of [agent.url, agent.metricsUrl])
        await assert.rejects(fetchHttp1(url), { code: "ECONNREFUSED" });
    }
  });

  test("every line of its log is JSON that says which instance wrote it", async (t) => {
    const agent = await startedAgent(t);
    agent.child.kill("SIGTERM");
    const { stdout } = await agent.exit;
    const lines = stdout.trimEnd().split("\n");
    assert.ok(lines.length > 0);
    for (const line of lines) assert.equal(JSON.parse(line).instance.region, "test.local");
    assert.doesNotMatch(stdout, /not-a-real-token/);
  });

  test("a second signal ends it at once, with the code of that signal", async (t) => {
    // Stopping waits a while for a collector that takes connections and never answers.
    const collector = createServer((socket) => void socket.on("error", () => undefined)).listen(0);
    t.after(() => collector.close());
    await once(collector, "listening");
    const address = collector.address();
    assert.ok(typeof address === "object" && address);
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${address.port}` };
    const agent = await startedAgent(t, "[observability.tracing]", env);
    const asked = once(collector, "connection");
    agent.child.kill("SIGTERM");
    await asked;
    agent.child.kill("SIGINT");
    assert.equal((await agent.exit).code, 130);
  });

  test("a port in use ends it with 1 and names the setting, and leaves nothing running", async (t) => {
    const taken = createServer().listen(0);
    t.after(() => taken.close());
    await once(taken, "listening");
    const address = taken.address();
    assert.ok(typeof address === "object" && address);
    const config = await writeConfig(t);
    for (const [flag, setting] of [
      ["--rpc-port", "rpc_port"],
      ["--prometheus-port", "observability.metrics.prometheus_port"],
    ] as const) {
      const args: string[] = ["agent", "--config", config.path, flag, String(address.port)];
      const { code, stderr } = await startKrane(t, program, args).exit;
      assert.equal(code, 1);
      assert.equal(
        stderr,
        `krane: ${setting}: port ${address.port} is already in use; choose another port or stop the process that uses it\n`,
      );
    }
  });

  test("a bad configuration ends it with 78 and one line per problem", async (t) => {
    const config = await writeConfig(t, "[deletion]\nconfirmations = -1\n[nonsense]\na = 1");
    const { code, stdout, stderr } = await startKrane(t, program, [
      "agent",
      "--config",
      config.path,
      "--rpc-port",
      "70000",
    ]).exit;
    assert.deepEqual([code, stdout], [78, ""]);
    const lines = stderr.trimEnd().split("\n");
    assert.equal(lines.length, 3, stderr);
    for (const setting of ["deletion.confirmations", "nonsense", "rpc_port"])
      assert.ok(
        lines.some((line) => line.includes(setting)),
        `${setting} in ${stderr}`,
      );
  });

  test("files that are not there end it with 78, and each is named with its setting", async (t) => {
    const config = await writeConfig(t, `[tls]\ncert_file = "/none/c.pem"\nkey_file = "/none/k.pem"`);
    const { code, stderr } = await startKrane(t, program, ["agent", "--config", config.path]).exit;
    assert.equal(code, 78);
    assert.equal(
      stderr,
      `krane: tls.cert_file: cannot read /none/c.pem: no such file
krane: tls.key_file: cannot read /none/k.pem: no such file
`,
    );
  });

  test("without any cluster it ends with 78, and says where it looked and what to do", async (t) => {
    const config = await writeConfig(t);
    const { code, stderr } = await startKrane(t, program, ["agent", "--config", config.path]).exit;
    assert.equal(code, 78);
    assert.match(stderr, /^krane: no Kubernetes cluster configured: [^\n]*KUBECONFIG[^\n]*\n$/);
  });

  test("SIGTERM ends it cleanly while the API server does not answer, before it has started", async (t) => {
    const config = await writeConfig(t);
    const kubeconfig = join(config.folder, "kubeconfig");
    await writeFile(kubeconfig, kubeconfigFor("http://127.0.0.1:1"));
    const agent = startKrane(t, program, ["agent", "--config", config.path], { KUBECONFIG: kubeconfig });
    const url = `http://127.0.0.1:${config.rpcPort}/health/startup`;
    await eventually("it is starting", async () => assert.equal((await fetchHttp1(url)).status, 503));
    agent.child.kill("SIGTERM");
    const { code, stderr } = await agent.exit;
    assert.deepEqual([code, stderr], [0, ""]);
  });

  test("with TLS it serves health over https in both versions of HTTP", async (t) => {
    const testdata = fileURLToPath(new URL("../../testdata/tls/", import.meta.url));
    const ca = await readFile(`${testdata}first.cert.pem`, "utf8");
    const config = await writeAgentConfig(
      t,
      `[tls]\ncert_file = "${testdata}first.cert.pem"\nkey_file = "${testdata}first.key.pem"`,
    );
    const agent = startKrane(t, program, config.args);
    const url = `https://127.0.0.1:${config.rpcPort}/health/ready`;
    await untilStarted(agent, url, ca);
    assert.equal((await fetchHttp2(url, { ca })).status, 200);
    agent.child.kill("SIGTERM");
    assert.equal((await agent.exit).code, 0);
  });

  test("it goes on when nobody reads its log any more, and still stops cleanly", async (t) => {
    const config = await writeAgentConfig(t);
    const agent = startKrane(t, program, config.args);
    agent.child.stdout?.destroy();
    const url = `http://127.0.0.1:${config.rpcPort}/health/ready`;
    await untilStarted(agent, url);
    assert.equal((await fetchHttp1(url)).status, 200);
    agent.child.kill("SIGTERM");
    assert.equal((await agent.exit).code, 0);
  });

  test("clients that ask for metrics without end and read nothing take neither its memory nor its files", async (t) => {
    const agent = await startedAgent(t);
    const rude = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const socket = connect({ port: agent.metricsPort, host: "127.0.0.1" }).on("error", () => undefined);
        t.after(() => socket.destroy());
        await once(socket, "connect");
        return socket;
      }),
    );
    for (const socket of rude) socket.write("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(5_000));
    assert.equal((await fetchHttp1(`${agent.url}/health/ready`)).status, 200);
    const { body } = await fetchHttp1(agent.metricsUrl);
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(body)?.[1]);
    assert.ok(value("process_open_fds") < 100, body);
    assert.ok(value("process_resident_memory_bytes") < 300_000_000, body);
    agent.child.kill("SIGTERM");
    assert.equal((await agent.exit).code, 0);
  });

  test("SIGTERM ends it while it waits for a configuration that nobody writes", async (t) => {
    const { folder } = await writeConfig(t);
    const pipe = join(folder, "pipe");
    assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
    const agent = startKrane(t, program, ["agent", "--config", pipe]);
    const writer = await eventually("it reads", () => open(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
    t.after(() => writer.close());
    agent.child.kill("SIGTERM");
    const { code, stderr } = await agent.exit;
    assert.deepEqual([code, stderr], [0, ""]);
  });

  test("--announce says where to look", async (t) => {
    const config = await writeAgentConfig(t);
    const agent = startKrane(t, program, [...config.args, "--announce"]);
    await untilStarted(agent, `http://127.0.0.1:${config.rpcPort}/health/startup`);
    agent.child.kill("SIGTERM");
    const { stderr } = await agent.exit;
    for (const place of [
      `http://localhost:${config.rpcPort}/health/ready`,
      `http://localhost:${config.metricsPort}/metrics`,
      `   ${relative(tmpdir(), program)} config print --config ${config.path}\n`,
    ])
      assert.ok(stderr.includes(place), stderr);
  });
});

describe("the bundle", () => {
  test("runs from anywhere and knows its version", async (t) => {
    const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8");
    for (const args of [["version"], ["--version"]]) {
      const { code, stdout, stderr } = await startKrane(t, program, args).exit;
      assert.deepEqual([code, stderr], [0, ""]);
      assert.ok(stdout.startsWith(`krane ${JSON.parse(manifest).version} (`), stdout);
    }
  });

  test("output that cannot be written is a failure with a message", async (t) => {
    const { path } = await writeConfig(t);
    const command = `"$0" config print --config "$1" > /dev/full`;
    const { status, stderr } = spawnSync("sh", ["-c", command, program, path], { encoding: "utf8" });
    assert.equal(status, 1);
    assert.match(stderr, /^krane: standard output: .*ENOSPC.*\n$/m);
  });

  test("a reader that leaves early is no crash", async (t) => {
    const krane = startKrane(t, program, ["agent", "--help"]);
    krane.child.stdout?.destroy();
    const { code, stderr } = await krane.exit;
    assert.deepEqual([code, stderr], [0, ""]);
  });
});
