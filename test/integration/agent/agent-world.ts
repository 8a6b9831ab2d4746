// A whole region around a real run(): a control plane over h2c, an embedded API server over
// HTTP, and the agent between them, with its ports.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import type { AgentDeps } from "../../../src/agent/agent-deps.ts";
import { run } from "../../../src/agent/run.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import type { Config } from "../../../src/config/config.ts";
import { parseConfig } from "../../../src/config/parse.ts";
import { renderProblems } from "../../../src/config/render.ts";
import { AgentService } from "../../../src/gen/krane/v1/agent_pb.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { freePort } from "../../support/krane-process.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { kubeconfigFor, type ServedCluster, serveCluster } from "../../support/served-cluster.ts";
import {
  token as controlToken,
  dev,
  type ServedControlPlane,
  serveControlPlane,
} from "../server/served-control-plane.ts";

export const agentToken = "kat_of_the_test";
export { dev as region };

export interface AgentWorld extends ServedControlPlane {
  readonly cluster: ServedCluster;
  /** What the agent's connections go through. */
  readonly links: { readonly cluster: FaultProxy; readonly controlPlane: FaultProxy };
  /** With TOML that comes after what every agent has. */
  startAgent(more?: string, options?: AgentOptions): Promise<RunningAgent>;
}

export interface AgentOptions {
  /** In place of the usual `[control]`. */
  readonly control?: string;
  /** Beside the kubeconfig in `[kubernetes]`. */
  readonly kubernetes?: string;
  /** Settings that are in no table. */
  readonly top?: string;
  readonly files?: Readonly<Record<string, string>>;
}

export interface RunningAgent {
  readonly url: string;
  /** Resolves when run() has. */
  stop(): Promise<void>;
}

export async function createAgentWorld(t: TestContext): Promise<AgentWorld> {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const controlPlane = await serveControlPlane(t, "h2c");
  const links = {
    cluster: await startFaultProxy(t, Number(new URL(cluster.url).port)),
    controlPlane: await startFaultProxy(t, controlPlane.running?.port ?? assert.fail("it is not served")),
  };
  const kubeconfig = kubeconfigFor(`http://127.0.0.1:${links.cluster.port}`);
  const usual = `url = "http://127.0.0.1:${links.controlPlane.port}"\ntoken = "${controlToken}"`;
  const startAgent = async (
    more = "",
    { control = usual, kubernetes = "", top = "", files = {} }: AgentOptions = {},
  ) => {
    const rpcPort = await freePort();
    const config = parse(`region = "${dev}"
rpc_port = ${rpcPort}
${top}
[control]
${control}
[kubernetes]
kubeconfig = "kubeconfig"
${kubernetes}
[agent]
token = "${agentToken}"
${more}`);
    return startedAgent(t, config, { kubeconfig, ...files });
  };
  return { ...controlPlane, cluster, links, startAgent };
}

export function parse(toml: string): Config {
  const file = { path: "krane.toml", text: toml };
  const outcome = parseConfig({ file, env: {}, flags: {}, randomId: () => "aB3dE6gH" });
  if (outcome.kind === "valid") return outcome.config;
  return assert.fail(renderProblems(outcome.problems));
}

export function agentDeps(files: Readonly<Record<string, string>>): AgentDeps {
  return {
    clock: createSystemClock(),
    random: createSeededRandom(1),
    log: createQuietLog(),
    build: { version: "0.0.0", revision: "r", nodeVersion: process.version },
    env: {},
    readTextFile: async (path) => files[path] ?? assert.fail(`no file ${path}`),
    runCommand: () => assert.fail("no command is needed"),
  };
}

/** An agent that has started; it is stopped with the test. */
export async function startedAgent(
  t: TestContext,
  config: Config,
  files: Readonly<Record<string, string>>,
): Promise<RunningAgent> {
  const stopping = new AbortController();
  let onStarted: () => void = () => undefined;
  const started = new Promise<void>((resolve) => {
    onStarted = resolve;
  });
  const ended = run(config, { ...agentDeps(files), onStarted }, stopping.signal);
  const stop = () => {
    stopping.abort();
    return ended;
  };
  t.after(stop);
  await Promise.race([started, ended.then(() => assert.fail("it ended instead of starting"))]);
  return { url: `${config.tls ? "https" : "http"}://127.0.0.1:${config.rpcPort}`, stop };
}

interface Place {
  readonly region: string;
  /** The control plane's port on this machine; it need not be open yet. */
  readonly port: number;
  readonly token: string;
}

/** Starts an agent that runs until the end of the test, with or without its control plane. */
export async function runAgent(t: TestContext, { url }: ServedCluster, place: Place): Promise<void> {
  const config = parse(`region = "${place.region}"
rpc_port = ${await freePort()}
[control]
url = "http://127.0.0.1:${place.port}"
token = "${place.token}"
[kubernetes]
kubeconfig = "kubeconfig"
`);
  const stopping = new AbortController();
  const ended = run(config, agentDeps({ kubeconfig: kubeconfigFor(url) }), stopping.signal);
  t.after(() => {
    stopping.abort();
    return ended;
  });
}

export const agentRoads = ["Connect, h2c", "Connect, HTTP/1.1", "gRPC, h2c", "gRPC-Web, HTTP/1.1"] as const;
export type AgentRoad = (typeof agentRoads)[number];

/** A client on a connection of its own. */
export function agentClient(
  t: TestContext,
  baseUrl: string,
  {
    road = "Connect, h2c",
    bearer = agentToken,
  }: { readonly road?: AgentRoad; readonly bearer?: string } = {},
): Client<typeof AgentService> {
  const send: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${bearer}`);
    return next(request);
  };
  const options = { baseUrl, interceptors: [send] };
  if (road === "Connect, HTTP/1.1")
    return createClient(AgentService, createConnectTransport({ ...options, httpVersion: "1.1" }));
  if (road === "gRPC-Web, HTTP/1.1")
    return createClient(AgentService, createGrpcWebTransport({ ...options, httpVersion: "1.1" }));
  const sessionManager = new Http2SessionManager(baseUrl);
  t.after(() => sessionManager.abort());
  const transport =
    road === "gRPC, h2c"
      ? createGrpcTransport({ ...options, sessionManager })
      : createConnectTransport({ ...options, httpVersion: "2", sessionManager });
  return createClient(AgentService, transport);
}
