// An agent as it ships, with everything switched on and every secret a canary, between a control plane and a
// cluster that remember all that they hear.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { ServerRequest } from "@krane/kube-apiserver";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { createControlPlaneServer } from "../../../src/server/control-plane-server.ts";
import { createFileStorage } from "../../../src/vault/storage/file-storage.ts";
import { Canaries } from "../../support/canaries.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { freePort, startKrane } from "../../support/krane-process.ts";
import { startOtlpReceiver } from "../../support/otlp-receiver.ts";
import { type SentSpan, spansOf } from "../../support/otlp-spans.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { type ServedCluster, serveCluster, servedClusterToken } from "../../support/served-cluster.ts";
import { createTestPlane } from "../../support/store-admin.ts";
import { createTestVault } from "../../support/vault-fixture.ts";

export const region = "local.dev";
const never = new AbortController().signal;
const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";

/** What was seen somewhere, and where. */
export interface Sighting {
  readonly place: string;
  readonly text: string | Buffer;
}

export type VaultPlace = "embedded" | "remote";

export async function createCanaryWorld(t: TestContext, program: string, vaultPlace: VaultPlace) {
  const canaries = new Canaries();
  const sightings: Sighting[] = [];
  const planted = plantSecrets(canaries);
  const folder = await mkdtemp(join(tmpdir(), "krane-canary-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const keys = join(folder, "keys");
  const clock = createSystemClock();
  const vault = createTestVault({ storage: createFileStorage(keys, { clock }), keys: [masterKey], clock });
  t.after(() => vault.close());

  const cluster = await serveWatchedCluster(t, sightings);
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfig);
  const controlPlane = await serveControlPlane(t, planted.tokens.control, sightings);
  const collector = await startOtlpReceiver(t);
  const [rpcPort, vaultPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const [url, vaultUrl] = [rpcPort, vaultPort].map((port) => `http://127.0.0.1:${port}`) as [string, string];

  const embedded = `master_keys = ["${masterKey}"]\n[vault.file]\npath = "${keys}"\n`;
  const token = `token = "${planted.tokens.vault}"\n`;
  const processes: Awaited<ReturnType<typeof startProcess>>[] = [];
  const start = async (args: readonly string[], toml: string, port: number) => {
    const file = join(folder, `${args.join("-")}.toml`);
    await writeFile(file, `rpc_port = ${port}\nlisten_host = "127.0.0.1"\n${toml}`);
    processes.push(await startProcess(t, program, [...args, "--config", file], port, collector.url));
  };
  if (vaultPlace === "remote")
    await start(["vault", "serve"], `[vault]\n${token}${embedded}${observability(0)}`, vaultPort);
  const vaultToml = vaultPlace === "remote" ? `url = "${vaultUrl}"\n${token}` : embedded;
  const toml = agentToml({ ...planted, controlUrl: controlPlane.url, kubeconfig, vaultToml, metricsPort });
  await start(["agent"], toml, rpcPort);
  return {
    ...planted,
    canaries,
    vault,
    cluster,
    controlPlane,
    sightings,
    /** Absent where the agent has its own. */
    vaultUrl: vaultPlace === "remote" ? vaultUrl : undefined,
    /** Calls a method with JSON, and remembers the whole answer. */
    async call(method: string, body: object, bearer?: string, baseUrl = url) {
      const answer = await post(`${baseUrl}/${method}`, body, bearer);
      sightings.push({ place: `answer of ${method} (${answer.status})`, text: JSON.stringify(answer) });
      return answer;
    },
    /** Ends the processes and collects what they have left behind; returns the spans among it. */
    async stop(): Promise<readonly SentSpan[]> {
      const { body } = await fetchHttp1(`http://127.0.0.1:${metricsPort}/metrics`);
      sightings.push({ place: "metrics", text: body });
      for (const { child, exit } of processes.reverse()) {
        child.kill("SIGTERM");
        const { code, stdout, stderr } = await exit;
        assert.equal(code, 0, stderr);
        const lines = `${stdout}${stderr}`.split("\n");
        assert.ok(lines.length > 3, "it said nothing");
        for (const line of lines) sightings.push({ place: `log line ${line}`, text: line });
      }
      assert.ok(collector.received.length > 0, "nothing was exported");
      for (const { path, body: sent } of collector.received)
        sightings.push({ place: `exported to ${path}`, text: sent });
      const traces = collector.received.filter(({ path }) => path === "/v1/traces");
      return traces.flatMap(({ body: sent }) => spansOf(sent));
    },
  };
}

function plantSecrets(canaries: Canaries) {
  canaries.adopt("master key", masterKey);
  canaries.adopt("kubernetes token", servedClusterToken);
  return {
    tokens: {
      control: canaries.plant("control token", (core) => `kct_${core}`),
      scheduler: canaries.plant("scheduler token", (core) => `kst_${core}`),
      agent: canaries.plant("agent token", (core) => `kat_${core}`),
      vault: canaries.plant("vault token", (core) => `kvt_${core}`),
    },
    password: canaries.plant("registry password", (core) => `p"w\\${core}`),
  };
}

/** Remembers every state of every object, and what krane sent. */
async function serveWatchedCluster(t: TestContext, sightings: Sighting[]): Promise<ServedCluster> {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  cluster.server.store.subscribe(({ key, object }) => {
    const place = `object ${key.plural} ${key.namespace}/${key.name}`;
    sightings.push({ place, text: JSON.stringify(object) });
  });
  cluster.server.faults.intercept(({ method, path, body, userAgent }: ServerRequest) => {
    if (userAgent?.startsWith("krane/"))
      sightings.push({ place: `request ${method} ${path}`, text: JSON.stringify(body ?? "") });
    return undefined;
  });
  return cluster;
}

interface AgentToml extends ReturnType<typeof plantSecrets> {
  readonly controlUrl: string;
  readonly kubeconfig: string;
  readonly vaultToml: string;
  readonly metricsPort: number;
}

function agentToml({ tokens, password, controlUrl, kubeconfig, vaultToml, metricsPort }: AgentToml): string {
  return `region = "${region}"
[control]
url = "${controlUrl}"
token = "${tokens.control}"
[kubernetes]
kubeconfig = "${kubeconfig}"
[agent]
token = "${tokens.agent}"
[scheduler]
token = "${tokens.scheduler}"
[registry]
url = "registry.example"
username = "puller"
password = '${password}'
[vault]
${vaultToml}${observability(metricsPort)}`;
}

function observability(metricsPort: number): string {
  return `[observability.logging]
level = "debug"
sample_rate = 1.0
[observability.tracing]
enabled = true
sample_rate = 1.0
[observability.metrics]
prometheus_port = ${metricsPort}
`;
}

/** Resolves when it has started. */
async function startProcess(
  t: TestContext,
  program: string,
  args: readonly string[],
  port: number,
  collectorUrl: string,
) {
  const started = startKrane(t, program, args, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl,
    OTEL_METRIC_EXPORT_INTERVAL: "1000",
  });
  await eventually(`krane ${args[0]} has started`, async () => {
    assert.equal((await fetchHttp1(`http://127.0.0.1:${port}/health/startup`)).status, 200);
  });
  return started;
}

/** Remembers every message; while it echoes, it refuses calls with what they authenticated with. */
async function serveControlPlane(t: TestContext, token: string, sightings: Sighting[]) {
  const state = { isEchoing: false, echoed: 0 };
  const listen: Interceptor = (next) => async (call) => {
    if (!call.stream)
      sightings.push({
        place: `call of ${call.method.name}`,
        text: toJsonString(call.method.input, call.message),
      });
    if (!state.isEchoing) return next(call);
    state.echoed += 1;
    const header = call.header.get("authorization") ?? "";
    throw new ConnectError(
      `no entry with ${header}, nor with ${header.slice("Bearer ".length)}`,
      Code.Internal,
      {
        "x-echo": header,
      },
    );
  };
  const deps = { clock: createSystemClock(), log: createQuietLog() };
  const plane = createTestPlane({ tokens: [new Secret(token)], interceptors: [listen] }, deps);
  await plane.admin.registerRegion(region);
  const readTextFile = () => assert.fail("no file is needed without TLS");
  const server = createControlPlaneServer(plane, { port: 0 }, { ...deps, readTextFile });
  const running = await server.start(never);
  t.after(() => running.close(AbortSignal.abort()));
  return { ...plane, url: running.url, state };
}

async function post(url: string, body: object, token: string | undefined) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: [...response.headers], body: await response.text() };
}
