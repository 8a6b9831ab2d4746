// Everything that a browser test looks at: `krane server` on PostgreSQL with its dashboard, an agent on the embedded cluster, and
// regions in every state.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { run } from "../../src/agent/run.ts";
import { unpackFiles } from "../../src/dashboard/page-files.ts";
import { ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { AdminService } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { type CustomObject, replicaSets } from "../../src/kube/resources.ts";
import { bundleDashboard } from "../../tools/bundle-dashboard.ts";
import { agentDeps, parse } from "../integration/agent/agent-world.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { freePort } from "../support/krane-process.ts";
import { type PrintedLogs, printLogs } from "../support/printed-logs.ts";
import { type RunningServer, startServer } from "../support/running-server.ts";
import { kubeconfigFor, serveCluster } from "../support/served-cluster.ts";

export const tokens = { ann: "token-of-ann-may-write", bob: "token-of-bob-may-read" } as const;

/** `live` has an agent; `silent` and `held` have had one. */
export const regions = {
  live: "eu-west-1.aws",
  held: "us-east-1.aws",
  silent: "ap-south-1.aws",
  empty: "sa-east-1.aws",
} as const;

/** What tenants write, as far as the control plane does not check it. */
export const markup = '<img src=x onerror="document.title=`owned`"><script>document.title="owned"</script>';

export interface World {
  readonly url: string;
  readonly server: () => RunningServer;
  /** The admin API, in the name of ann. */
  readonly api: Client<typeof AdminService>;
  /** Writes another number of pods onto a ReplicaSet, past krane. */
  editByHand(name: string, replicas: number): Promise<void>;
  /** What the pods print. */
  readonly logs: PrintedLogs;
  /** A browser of somebody who is not signed in. */
  visit(options?: {
    readonly colorScheme?: "light" | "dark";
    readonly width?: number;
    readonly timezoneId?: string;
  }): Promise<BrowserContext>;
  restartServer(whileGone: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

const agentToken = "token-of-the-agents";

export async function createWorld(): Promise<World> {
  const dataDir = await mkdtemp(join(tmpdir(), "krane-browser-"));
  const cluster = await serveCluster();
  cluster.behaviours.set("broken", { image: "*/broken:*", behaviour: { image: "missing" } });
  const logs = printLogs(cluster);
  const [port, rpcPort] = [await freePort(), await freePort()];
  const { files } = await bundleDashboard();
  const flags = {
    "data-dir": dataDir,
    listen: `127.0.0.1:${port}`,
    "agent-tokens": Object.values(regions)
      .map((region, index) => `${region} ${agentToken}-${index}`)
      .join(","),
    "admin-tokens": `ann read-write+logs ${tokens.ann},bob read-only ${tokens.bob}`,
  };
  const more = { dashboard: unpackFiles(files), createToken: () => randomBytes(24).toString("hex") };
  let server = await startServer(flags, {}, more);
  await fill(server);
  const url = `http://127.0.0.1:${port}`;
  const api = createApi(url);
  await fillApp(api);
  const stopping = new AbortController();
  const config = parse(`region = "${regions.live}"
rpc_port = ${rpcPort}
[control]
url = "http://127.0.0.1:${port}"
token = "${agentToken}-0"
[kubernetes]
kubeconfig = "kubeconfig"
[logs]
enabled = true
`);
  const agent = run(config, agentDeps({ kubeconfig: kubeconfigFor(cluster.url) }), stopping.signal);
  const browser = await launch();
  return {
    url,
    server: () => server,
    api,
    logs,
    async editByHand(name, replicas) {
      const manifest = { metadata: { namespace: "acme", name }, spec: { replicas } };
      const options = { fieldManager: "kubectl-edit", force: true };
      await cluster.api.apply<CustomObject>(replicaSets, manifest, options, stopping.signal);
    },
    visit: ({ colorScheme = "light", width = 1280, timezoneId } = {}) =>
      browser.newContext({
        ...{ colorScheme, viewport: { width, height: 800 }, reducedMotion: "reduce" },
        ...(timezoneId !== undefined && { timezoneId }),
      }),
    async restartServer(whileGone) {
      await server.stop();
      await whileGone();
      server = await startServer(flags, {}, more);
    },
    async close() {
      await browser.close();
      stopping.abort();
      await agent;
      await server.stop();
      await cluster.stop();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}

function createApi(baseUrl: string): Client<typeof AdminService> {
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${tokens.ann}`);
        return next(request);
      },
    ],
  });
  return createClient(AdminService, transport);
}

/** An app with its environment; its releases become current as soon as they are ready. */
async function fillApp(api: Client<typeof AdminService>): Promise<void> {
  const region = regions.live;
  const owner = { workspaceId: "ws_acme", projectId: "prj_shop" };
  await api.applyEnvironment({ region, id: "env_shop", ...owner });
  await api.setSecret({ region, environmentId: "env_shop", name: "DATABASE_URL", encrypted: "sealed" });
  const template = applyDeployment({
    ...owner,
    deploymentId: "app_shop",
    k8sName: "shop",
    image: "registry.example/acme/shop:1",
    replicas: 2,
    environmentId: "env_shop",
  });
  await api.applyApp({ region, spec: { template, policy: { readySeconds: 0, drainSeconds: 1 } } });
}

export function launch(): Promise<Browser> {
  const executablePath = process.env["KRANE_TEST_CHROMIUM"] ?? "/usr/bin/chromium";
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

async function fill({ admin, store }: RunningServer): Promise<void> {
  const set = (region: string, id: string, image: string, replicas = 1) =>
    admin.setDeployment(
      region,
      applyDeployment({
        deploymentId: id,
        k8sName: id.replace("d_", ""),
        image,
        replicas,
        environmentId: "env_production",
      }),
    );
  await set(regions.live, "d_web", "registry.example/acme/web:1", 2);
  await set(regions.live, "d_worker", "registry.example/acme/worker:4", 3);
  await set(regions.live, "d_checkout", "registry.example/acme/broken:7", 2);
  await set(regions.live, "d_paused", "registry.example/acme/cron:2", 0);
  await set(regions.live, "d_spare", "registry.example/acme/web:1");
  await set(regions.live, "d_markup", markup);
  await set(regions.silent, "d_old", "registry.example/acme/web:1");
  const nowMs = Date.now();
  const blocked = (key: string, id: string) => ({
    ...{ controller: "deployments", key, id, suspectedPasses: 3, firstSuspectedMs: BigInt(nowMs - 900_000) },
    reason: "the control plane has not known it for 3 resyncs; it may have lost data",
  });
  const held = create(ReportAgentStateRequestSchema, {
    state: {
      instanceId: "ins_held",
      region: regions.held,
      version: "0.1.0",
      controllers: [{ name: "deployments", objects: 3, blockedDeletions: 3 }],
    },
    blockedDeletions: [
      blocked("acme/gone", "d_gone"),
      blocked("acme/lost", "d_lost"),
      blocked("acme/stray", "d_stray"),
    ],
  });
  await store.reportAgent(regions.held, { report: held, atMs: nowMs });
  const silent = create(ReportAgentStateRequestSchema, {
    state: {
      instanceId: "ins_silent",
      region: regions.silent,
      version: "0.1.0",
      controllers: [{ name: "deployments", objects: 1, stream: { cursor: 1n, settledUpTo: 1n } }],
    },
  });
  await store.reportAgent(regions.silent, { report: silent, atMs: nowMs - 125_000 });
}

/** Signs in on the page and waits for the fleet. */
export async function signIn(page: Page, world: World, token: string = tokens.ann): Promise<void> {
  await page.goto(`${world.url}/dashboard/`);
  await page.getByLabel("Token of the admin API").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Fleet" }).waitFor();
}

/** Fails with each violation that axe finds. */
export async function assertAccessible(on: Page, name: string): Promise<void> {
  await on.evaluate(axe.source);
  const violations = await on.evaluate(async () => {
    const loaded = Reflect.get(globalThis, "axe") as {
      run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
    };
    return (await loaded.run()).violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`,
    );
  });
  assert.deepEqual(violations, [], name);
}
