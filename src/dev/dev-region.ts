// A complete region in one process: a cluster, a control plane and an agent, with the sample scenario.

import { type ConnectRouter, createClient, type Interceptor } from "@connectrpc/connect";
import type { PodBehaviour } from "@krane/kube-apiserver";
import type { AgentDeps } from "../agent/agent-deps.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import { Secret } from "../config/secret.ts";
import { createHttpLink } from "../control-plane/transport.ts";
import type { PageFiles } from "../dashboard/page-files.ts";
import { AgentService, type AgentStatus, type ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import { explainListenFailure, ServiceError } from "../http/service-error.ts";
import type { LifecycleStack, LifecycleStep } from "../runtime/lifecycle.ts";
import { startLoop } from "../runtime/process-steps.ts";
import type { Admin } from "../server/admin-service/admin-client.ts";
import { advanceReleases, releaseStepsEveryMs } from "../server/apps/release-steps.ts";
import { renderCliContext } from "../server/cli-context.ts";
import { createControlPlaneServer, type RunningControlPlane } from "../server/control-plane-server.ts";
import type { Faults } from "../server/faults.ts";
import { createInMemoryControlPlane, type InMemoryControlPlane } from "../server/in-process.ts";
import type { DevCluster } from "./dev-cluster.ts";
import { DevError } from "./dev-error.ts";
import { createDevVault, type DevVault, type DevVaultDeps } from "./dev-vault.ts";
import { type EmbeddedClusterDeps, startEmbeddedCluster } from "./embedded-cluster.ts";
import { connectRealCluster } from "./real-cluster.ts";
import { agentStep } from "./running-agent.ts";
import { applySample, devRegion } from "./scenario.ts";

export interface DevPorts {
  readonly kube: number;
  readonly control: number;
  readonly rpc: number;
  /** 0 turns it off. */
  readonly metrics: number;
}

export type ClusterChoice =
  | {
      readonly kind: "embedded";
      readonly kubeconfigPath: string;
      /** How its pods behave; by default they become Ready after a second. */
      readonly behaviour?: Partial<PodBehaviour>;
    }
  | { readonly kind: "real"; readonly kubeconfigPath: string };

export interface DevOptions {
  readonly ports: DevPorts;
  readonly cluster: ClusterChoice;
  /** Where to write a contexts file for the command line; undefined writes no file. */
  readonly cliContextPath?: string;
}

export interface DevDeps extends AgentDeps, EmbeddedClusterDeps, DevVaultDeps {
  /** Absent in a program that was not bundled. */
  readonly dashboard?: PageFiles | undefined;
  /** Opens a browser; resolves to false if there is none. Absent where nobody looks at a screen. */
  openUrl?(url: string): Promise<boolean>;
}

export interface DevRegion {
  readonly name: string;
  readonly clock: Clock;
  readonly cluster: DevCluster;
  readonly admin: Admin;
  readonly faults: Faults;
  readonly agent: AgentClient;
  readonly cliContextPath: string | undefined;
  /** By name. */
  readonly urls: Readonly<Record<"kubernetes" | "control plane" | "agent" | "metrics", string>> & {
    readonly dashboard?: string;
  };
  /** Signs in to the dashboard; everything here is gone with the process. */
  readonly adminToken: Secret;
  readonly openUrl?: DevDeps["openUrl"];
}

// Everything is unencrypted, and meant for the user of this machine; it only listens on loopback.
const loopback = "127.0.0.1";

/** Its parts stop with the stack. */
export async function startDevRegion(
  options: DevOptions,
  deps: DevDeps,
  stack: LifecycleStack,
  signal: AbortSignal,
): Promise<DevRegion> {
  const { ports, cliContextPath } = options;
  const cluster = await stack.open(
    "cluster",
    (starting) => startCluster(options, deps, starting),
    (started) => ({ stop: () => started.stop() }),
    signal,
  );
  const controlToken = deps.createToken();
  const adminToken = new Secret(deps.createToken());
  const adminTokens = new Secret(`dev read-write+logs ${adminToken.reveal()}`);
  const plane = createInMemoryControlPlane(
    { tokens: [new Secret(controlToken)], adminTokens, createToken: deps.createToken },
    deps,
  );
  const vault = await stack.open(
    "vault",
    async () => createDevVault(deps),
    (created) => ({ stop: () => created.vault.close() }),
    signal,
  );
  const control = await stack.open(
    "control plane",
    (starting) => startControlPlane(plane, vault, ports.control, deps, starting),
    (started) => ({ stop: (hurry) => started.close(hurry), failed: started.failed }),
    signal,
  );
  await plane.store.registerRegion(devRegion);
  await stack.start(releasesStep(plane, deps), signal);
  await applySample(plane.admin, options.cluster.kind);
  const controlUrl = `http://${loopback}:${control.port}`;
  if (cliContextPath !== undefined)
    await stack.start(cliContextStep(cliContextPath, controlUrl, { adminToken, vault }, deps), signal);
  const agentToken = deps.createToken();
  const agentOptions = {
    rpcPort: ports.rpc,
    listenHost: loopback,
    metricsPort: ports.metrics,
    controlUrl,
    controlToken,
    vaultToken: vault.token.reveal(),
    agentToken,
    kubeconfigPath: cluster.kubeconfigPath,
    networkPolicy: options.cluster.kind === "real" ? "best-effort" : "required",
  } as const;
  await stack.start(agentStep(agentOptions, deps), signal);
  const agentUrl = `http://${loopback}:${ports.rpc}`;
  const agent = await stack.open(
    "agent client",
    async () => createAgentClient(agentUrl, agentToken, deps.clock),
    (client) => ({ stop: () => client.close() }),
    signal,
  );
  return {
    name: devRegion,
    clock: deps.clock,
    cluster,
    admin: plane.admin,
    faults: plane.faults,
    agent,
    cliContextPath,
    adminToken,
    ...(deps.openUrl && { openUrl: deps.openUrl }),
    urls: {
      ...(control.dashboardUrl !== undefined && { dashboard: control.dashboardUrl }),
      kubernetes: cluster.url,
      "control plane": controlUrl,
      agent: agentUrl,
      metrics: ports.metrics === 0 ? "off" : `http://${loopback}:${ports.metrics}/metrics`,
    },
  };
}

function releasesStep({ store }: InMemoryControlPlane, { clock, random, log }: DevDeps): LifecycleStep {
  const onFailure = (component: string, error: unknown) =>
    log.warn("a task failed and will be retried", { component, error });
  const loop = async (signal: AbortSignal) => {
    for (;;) {
      await advanceReleases(store, clock.wallMs(), signal);
      await sleep(clock, releaseStepsEveryMs, signal);
    }
  };
  return { name: "releases", start: async () => startLoop("releases", loop, { clock, random, onFailure }) };
}

interface CliTokens {
  readonly adminToken: Secret;
  readonly vault: DevVault;
}

function cliContextStep(path: string, server: string, tokens: CliTokens, deps: DevDeps): LifecycleStep {
  return {
    name: "contexts file",
    async start() {
      await writeCliContext(path, server, tokens, deps);
      return { stop: () => deps.removeFile(path) };
    },
  };
}

async function writeCliContext(
  path: string,
  server: string,
  { adminToken: token, vault }: CliTokens,
  deps: DevDeps,
): Promise<void> {
  const context = {
    name: "dev",
    server,
    region: devRegion,
    token,
    vault: { url: server, token: vault.token },
  };
  try {
    await deps.writeTextFile(path, renderCliContext(context));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const advice = "choose another path with --write-kubeconfig";
    throw new DevError("file_unusable", `cannot write ${path}: ${reason}; ${advice}`, { cause });
  }
}

function startCluster(
  { cluster, ports }: DevOptions,
  deps: DevDeps,
  signal: AbortSignal,
): Promise<DevCluster> {
  if (cluster.kind === "real") return connectRealCluster(cluster.kubeconfigPath, deps, signal);
  return startEmbeddedCluster({ ...cluster, port: ports.kube }, deps, signal);
}

async function startControlPlane(
  plane: InMemoryControlPlane,
  vault: DevVault,
  port: number,
  deps: DevDeps,
  signal: AbortSignal,
): Promise<RunningControlPlane> {
  const routes = (router: ConnectRouter) => {
    plane.routes(router);
    vault.routes(router);
  };
  try {
    const options = { port, host: loopback, dashboard: deps.dashboard };
    return await createControlPlaneServer({ ...plane, routes }, options, deps).start(signal);
  } catch (error) {
    if (!(error instanceof ServiceError) || !(error.cause instanceof Error)) throw error;
    throw explainListenFailure({ setting: "--control-port", port }, error.cause);
  }
}

// Reads the agent's state through AgentService on its RPC port, with its token. So `krane dev` shows nothing that
// a production agent would not report too.

interface AgentClient {
  status(signal: AbortSignal): Promise<AgentStatus | undefined>;
  objects(signal: AbortSignal): Promise<readonly ObjectStatus[]>;
  close(): Promise<void>;
}

// A demo has a few objects; of thousands, only the first are shown.
const pagesMax = 10;
const timeoutMs = 5_000;

function createAgentClient(baseUrl: string, token: string, clock: Clock): AgentClient {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const link = createHttpLink({ baseUrl, interceptors: [authorize] }, clock);
  const client = createClient(AgentService, link.transport);
  return {
    status: async (signal) => (await client.getStatus({}, { signal, timeoutMs })).status,
    async objects(signal) {
      const objects: ObjectStatus[] = [];
      let pageToken = "";
      for (let pages = 0; pages < pagesMax; pages++) {
        const page = await client.listObjects({ pageToken }, { signal, timeoutMs });
        objects.push(...page.objects);
        pageToken = page.nextPageToken;
        if (pageToken === "") break;
      }
      return objects;
    },
    close: () => link.close(),
  };
}
