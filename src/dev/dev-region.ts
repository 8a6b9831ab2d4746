// A whole region in one process: a cluster, a control plane and an agent between them, with the sample
// scenario. What starts last stops first; a start that fails stops what had started.
import type { AgentDeps } from "../agent/agent-deps.ts";
import type { Clock } from "../concurrency/clock.ts";
import { Secret } from "../config/secret.ts";
import type { Admin } from "../server/admin-service/admin-client.ts";
import { renderCliContext } from "../server/cli-context.ts";
import { createControlPlaneServer, type RunningControlPlane } from "../server/control-plane-server.ts";
import type { Faults } from "../server/faults.ts";
import { createInMemoryControlPlane, type InMemoryControlPlane } from "../server/in-process.ts";
import { explainListenFailure, ServiceError } from "../services/service-error.ts";
import { type AgentClient, createAgentClient } from "./agent-client.ts";
import type { DevCluster } from "./dev-cluster.ts";
import { DevError } from "./dev-error.ts";
import { type EmbeddedClusterDeps, startEmbeddedCluster } from "./embedded-cluster.ts";
import type { PodBehaviour } from "./kube-apiserver/controllers/pod-behaviour.ts";
import { connectRealCluster } from "./real-cluster.ts";
import { type RunningAgent, startAgent } from "./running-agent.ts";
import { devRegion, policedDeployment, sampleDeployments, samplePolicy, sampleSentinel } from "./scenario.ts";
import { applyWanted } from "./wanted-objects.ts";

export interface DevPorts {
  readonly kube: number;
  readonly control: number;
  readonly rpc: number;
  /** 0 for none. */
  readonly metrics: number;
}

export type ClusterChoice =
  | {
      readonly kind: "embedded";
      readonly kubeconfigPath: string;
      /** How its pods behave; the default takes a second to Ready. */
      readonly behaviour?: Partial<PodBehaviour>;
    }
  | { readonly kind: "real"; readonly kubeconfigPath: string };

export interface DevOptions {
  readonly ports: DevPorts;
  readonly cluster: ClusterChoice;
  /** Where to write a contexts file for the command line; without it there is none. */
  readonly cliContextPath?: string | undefined;
}

export interface DevDeps extends AgentDeps, EmbeddedClusterDeps {
  /** Text that cannot be guessed. */
  createToken(): string;
}

export interface DevRegion {
  readonly name: string;
  readonly clock: Clock;
  readonly cluster: DevCluster;
  readonly admin: Admin;
  readonly faults: Faults;
  readonly agent: AgentClient;
  readonly cliContextPath: string | undefined;
  /** Where to look, by name. */
  readonly urls: Readonly<Record<"kubernetes" | "control plane" | "agent" | "metrics", string>>;
  /** Rejects when the agent or a port fails; resolves after stop(). */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

// Everything is in the clear and meant for whoever sits at this machine; nobody else on the network gets in.
const loopback = "127.0.0.1";

export async function startDevRegion(
  options: DevOptions,
  deps: DevDeps,
  signal: AbortSignal,
): Promise<DevRegion> {
  const stack = new AsyncStack();
  try {
    const cluster = await startCluster(options, deps, signal);
    stack.push(() => cluster.stop());
    const controlToken = deps.createToken();
    const adminToken = new Secret(deps.createToken());
    const adminTokens = new Secret(`dev read-write ${adminToken.reveal()}`);
    const plane = createInMemoryControlPlane({ tokens: [new Secret(controlToken)], adminTokens }, deps);
    const control = await startControlPlane(plane, options.ports.control, deps, signal);
    stack.push(() => control.close());
    await plane.store.registerRegion(devRegion);
    await askForSample(plane.admin, options.cluster.kind);
    const agentToken = deps.createToken();
    const { rpc, metrics } = options.ports;
    const agentUrl = `http://${loopback}:${rpc}`;
    const controlUrl = `http://${loopback}:${control.port}`;
    const { cliContextPath } = options;
    if (cliContextPath !== undefined) {
      await writeCliContext(cliContextPath, controlUrl, adminToken, deps);
      stack.push(() => deps.removeFile(cliContextPath));
    }
    const agent = await startAgent(
      {
        rpcPort: rpc,
        metricsPort: metrics,
        controlUrl,
        controlToken,
        agentToken,
        kubeconfigPath: cluster.kubeconfigPath,
        networkPolicy: options.cluster.kind === "real" ? "best-effort" : "required",
      },
      { ...deps, listenHost: loopback },
      signal,
    );
    stack.push(() => agent.stop());
    const client = createAgentClient(agentUrl, agentToken, deps.clock);
    stack.push(() => client.close());
    return {
      name: devRegion,
      clock: deps.clock,
      cluster,
      admin: plane.admin,
      faults: plane.faults,
      agent: client,
      cliContextPath,
      urls: {
        kubernetes: cluster.url,
        "control plane": controlUrl,
        agent: agentUrl,
        metrics: metrics === 0 ? "off" : `http://${loopback}:${metrics}/metrics`,
      },
      ended: endOf(agent, control),
      stop: () => stack.unwind(),
    };
  } catch (error) {
    await stack.unwind();
    throw error;
  }
}

async function writeCliContext(path: string, server: string, token: Secret, deps: DevDeps): Promise<void> {
  try {
    await deps.writeTextFile(path, renderCliContext({ name: "dev", server, region: devRegion, token }));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const advice = "choose another place with --write-kubeconfig";
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

async function askForSample(admin: Admin, cluster: ClusterChoice["kind"]): Promise<void> {
  const region = { admin, name: devRegion };
  for (const deployment of sampleDeployments()) await applyWanted(region, "deployment", deployment);
  // Where pods are real a sentinel would need an image and databases that nobody has at hand.
  if (cluster === "embedded") await applyWanted(region, "sentinel", sampleSentinel());
  await applyWanted(region, "policy", samplePolicy(), policedDeployment);
}

async function startControlPlane(
  plane: InMemoryControlPlane,
  port: number,
  deps: DevDeps,
  signal: AbortSignal,
): Promise<RunningControlPlane> {
  try {
    return await createControlPlaneServer(plane, { port, host: loopback }, deps).start(signal);
  } catch (error) {
    if (!(error instanceof ServiceError) || !(error.cause instanceof Error)) throw error;
    throw explainListenFailure("--control-port", port, error.cause);
  }
}

function endOf(agent: RunningAgent, control: RunningControlPlane): Promise<void> {
  const ended = Promise.race([agent.ended, control.failed]);
  // Whoever waits for it sees the failure; before that it is not a rejection that nobody handles.
  ended.catch(() => undefined);
  return ended;
}

/** Undoes in reverse order, all of it, once. */
class AsyncStack {
  private readonly undo: (() => Promise<void>)[] = [];
  private unwound: Promise<void> | undefined;

  push(undo: () => Promise<void>): void {
    this.undo.push(undo);
  }

  unwind(): Promise<void> {
    this.unwound ??= this.run();
    return this.unwound;
  }

  private async run(): Promise<void> {
    const failures: unknown[] = [];
    for (const undo of this.undo.reverse()) await undo().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, "krane dev did not stop cleanly");
  }
}
