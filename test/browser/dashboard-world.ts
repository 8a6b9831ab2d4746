// Everything that a browser test looks at: `krane server` on PostgreSQL with its dashboard, an agent on the embedded cluster, and
// regions in every state.
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { run } from "../../src/agent/run.ts";
import { unpackFiles } from "../../src/dashboard/page-files.ts";
import { ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { bundleDashboard } from "../../tools/bundle-dashboard.ts";
import { agentDeps, parse } from "../integration/agent/agent-world.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { freePort } from "../support/krane-process.ts";
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
  /** A browser of somebody who is not signed in. */
  visit(options?: {
    readonly colorScheme?: "light" | "dark";
    readonly width?: number;
  }): Promise<BrowserContext>;
  restartServer(whileGone: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

const agentToken = "token-of-the-agents";

export async function createWorld(): Promise<World> {
  const dataDir = await mkdtemp(join(tmpdir(), "krane-browser-"));
  const cluster = await serveCluster();
  cluster.behaviours.set("broken", { image: "*/broken:*", behaviour: { image: "missing" } });
  const [port, rpcPort] = [await freePort(), await freePort()];
  const { files } = await bundleDashboard();
  const flags = {
    "data-dir": dataDir,
    listen: `127.0.0.1:${port}`,
    "agent-tokens": Object.values(regions)
      .map((region, index) => `${region} ${agentToken}-${index}`)
      .join(","),
    "admin-tokens": `ann read-write ${tokens.ann},bob read-only ${tokens.bob}`,
  };
  const more = { dashboard: unpackFiles(files), createToken: () => randomBytes(24).toString("hex") };
  let server = await startServer(flags, {}, more);
  await fill(server);
  const stopping = new AbortController();
  const config = parse(`region = "${regions.live}"
rpc_port = ${rpcPort}
[control]
url = "http://127.0.0.1:${port}"
token = "${agentToken}-0"
[kubernetes]
kubeconfig = "kubeconfig"
`);
  const agent = run(config, agentDeps({ kubeconfig: kubeconfigFor(cluster.url) }), stopping.signal);
  const browser = await launch();
  return {
    url: `http://127.0.0.1:${port}`,
    server: () => server,
    visit: ({ colorScheme = "light", width = 1280 } = {}) =>
      browser.newContext({ colorScheme, viewport: { width, height: 800 }, reducedMotion: "reduce" }),
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

function launch(): Promise<Browser> {
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
      controllers: [{ name: "deployments", objects: 2, blockedDeletions: 2 }],
    },
    blockedDeletions: [blocked("acme/gone", "d_gone"), blocked("acme/lost", "d_lost")],
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

/** Writes a screenshot for the documentation, if that was asked for. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env["KRANE_SCREENSHOTS"];
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  const width = page.viewportSize()?.width ?? 1280;
  await page.screenshot({
    path: join(folder, `dashboard-${name}.png`),
    clip: { x: 0, y: 0, width, height: 620 },
  });
}
