// One place in the cluster where an agent runs. When its process ends, the kubelet starts the next one. Each process is a
// whole agent: the real run(), with simulated connections.

import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, createRouterTransport, type Transport } from "@connectrpc/connect";
import type { AgentNetwork } from "../src/agent/agent-deps.ts";
import { run } from "../src/agent/run.ts";
import type { Config } from "../src/config/config.ts";
import { parseConfig } from "../src/config/parse.ts";
import { renderProblems } from "../src/config/render.ts";
import { type AnyKind, allKinds } from "../src/kinds/kinds.ts";
import { serviceAccountDir } from "../src/kube/in-cluster.ts";
import { createLog } from "../src/telemetry/log.ts";
import { Choices } from "./choices.ts";
import { createKubeLink } from "./kube-link.ts";
import { type Interfere, Link } from "./link.ts";
import { createPlaneLink } from "./plane-link.ts";
import type { SimCluster } from "./sim-cluster.ts";
import { controlToken, type SimPlane } from "./sim-plane.ts";
import { SimProcess } from "./sim-process.ts";
import type { SimVault } from "./sim-vault.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export const ownNamespace = "krane-system";
export const agentToken = "sim-agent-token";
export const schedulerToken = "sim-scheduler-token";

/** Controllers that load without reading a file, so that no step of a world waits for a disk. */
export async function loadKinds(): Promise<readonly AnyKind[]> {
  return Promise.all(
    allKinds.map(async (kind) => {
      const create = await kind.loadController();
      return { ...kind, loadController: () => Promise.resolve(create) } as AnyKind;
    }),
  );
}

export interface SimAgentDeps {
  readonly seed: number;
  readonly region: string;
  readonly clock: VirtualClock;
  readonly cluster: SimCluster;
  readonly plane: SimPlane;
  readonly vault: SimVault;
  readonly kinds: readonly AnyKind[];
  /** What a plan does to the messages between a process and its peers. */
  readonly interfere?: (agent: SimAgent, ...message: Parameters<Interfere>) => ReturnType<Interfere>;
  trace(who: string, what: string): void;
  /** Sees every line of the agent's log. */
  onLog(who: string, line: string): void;
  /** An agent that ends without being told to. */
  onExit(agent: SimAgent, error: unknown): void;
  /** An agent that stopped and still has timers. */
  onLeftBehind(what: string): void;
}

const files: Readonly<Record<string, string>> = {
  [`${serviceAccountDir}/token`]: "sim-service-account-token",
  [`${serviceAccountDir}/ca.crt`]: "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",
  [`${serviceAccountDir}/namespace`]: ownNamespace,
};

/** As the chart sets it. */
const graceMs = 45_000;

interface Running {
  readonly process: SimProcess;
  readonly stopping: AbortController;
  readonly links: Readonly<Record<"kube" | "plane", Link>>;
  services: Transport | undefined;
  hasStarted: boolean;
  isToldToStop: boolean;
}

export class SimAgent {
  readonly name: string;
  private readonly deps: SimAgentDeps;
  private readonly config: Config;
  private starts = 0;
  private current: Running | undefined;

  constructor(name: string, deps: SimAgentDeps) {
    this.name = name;
    this.deps = deps;
    this.config = parse(`region = "${deps.region}"
instance_id = "krane-${name}"
lease = "required"
[control]
url = "http://control.svc"
token = "${controlToken}"
[vault]
url = "http://vault.svc"
[agent]
token = "${agentToken}"
[scheduler]
token = "${schedulerToken}"`);
  }

  get process(): SimProcess | undefined {
    return this.current?.process;
  }

  get links(): readonly Link[] {
    return Object.values(this.current?.links ?? {});
  }

  linkTo(peer: "kube" | "plane"): Link | undefined {
    return this.current?.links[peer];
  }

  get hasStarted(): boolean {
    return this.current?.hasStarted ?? false;
  }

  /** A client of one of its services; undefined while they are not served. */
  client<S extends DescService>(service: S): Client<S> | undefined {
    const transport = this.current?.services;
    return transport && createClient(service, transport);
  }

  start(): void {
    if (this.current !== undefined) return;
    const { clock, seed, interfere } = this.deps;
    this.starts += 1;
    const name = `agent ${this.name}.${this.starts}`;
    const process = new SimProcess(name, clock);
    const linkTo = (peer: string, hasPings: boolean) =>
      new Link(`${name} to ${peer}`, process, {
        clock,
        choices: new Choices(seed, `${name} to ${peer}`),
        hasPings,
        ...(interfere && { interfere: (...message) => interfere(this, ...message) }),
      });
    const links = { kube: linkTo("kube", false), plane: linkTo("plane", true) };
    const running: Running = {
      process,
      stopping: new AbortController(),
      links,
      services: undefined,
      hasStarted: false,
      isToldToStop: false,
    };
    this.current = running;
    this.deps.trace(name, "starts");
    const ended = run(this.config, this.agentDeps(running), running.stopping.signal);
    ended.then(
      () => this.exited(running, undefined),
      (error: unknown) => this.exited(running, error),
    );
  }

  /** SIGKILL. */
  kill(): void {
    const running = this.current;
    if (running === undefined) return;
    this.deps.trace(running.process.name, "killed");
    this.current = undefined;
    running.process.kill();
  }

  /** SIGTERM, which a stalled process gets when it runs again; and SIGKILL if it has not ended in time. */
  stop(): void {
    const running = this.current;
    if (running === undefined || running.isToldToStop) return;
    this.deps.trace(running.process.name, "told to stop");
    running.isToldToStop = true;
    running.process.wake(() => running.stopping.abort());
    this.deps.clock.setTimer(graceMs, () => {
      if (this.current === running) this.kill();
    });
  }

  private exited(running: Running, error: unknown): void {
    const { process, stopping } = running;
    if (!process.isAlive) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.deps.trace(process.name, error === undefined ? "stopped" : `failed: ${reason}`);
    if (this.current === running) this.current = undefined;
    if (error === undefined && process.timerCount > 0)
      this.deps.onLeftBehind(`${process.name} stopped, and left ${process.timerCount} timers behind`);
    process.kill();
    if (!stopping.signal.aborted || error !== undefined) this.deps.onExit(this, error);
  }

  private agentDeps(running: Running) {
    const { seed } = this.deps;
    const { process } = running;
    const { clock } = process;
    const log = createLog(
      {
        level: "debug",
        instance: { id: this.config.instanceId, region: this.deps.region, version: "0" },
        sampling: { rate: 1, slowThresholdMs: 0 },
      },
      {
        write: (line) => this.deps.onLog(process.name, line),
        random: new Choices(seed, `${process.name} log`),
        clock,
      },
    );
    return {
      clock,
      log,
      random: new Choices(seed, process.name),
      build: { version: "0", revision: "sim", nodeVersion: "v0" },
      env: { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" },
      readTextFile: async (path: string) => {
        const text = files[path];
        if (text === undefined) throw new Error(`no file ${path}`);
        return text;
      },
      runCommand: () => Promise.reject(new Error("no command is needed")),
      network: this.network(running),
      onStarted: () => {
        running.hasStarted = true;
        this.deps.trace(process.name, "has started");
      },
    };
  }

  private network(running: Running): AgentNetwork {
    const { cluster, plane, vault, kinds } = this.deps;
    const { process, links } = running;
    return {
      kinds,
      connectKube: ({ userAgent = "krane" }) =>
        createKubeLink({ process, link: links.kube, handler: cluster.handlerOf(process.name, userAgent) }),
      connectControlPlane: (_, interceptors) =>
        createPlaneLink({ process, link: links.plane, answering: () => plane.answering() }, interceptors),
      connectVault: () => vault.connect(process),
      serve: (services) => ({
        name: "RPC port",
        start: async () => {
          running.services = createRouterTransport((router) => {
            for (const { routes } of services) routes(router);
          });
          return {
            stop: async () => {
              running.services = undefined;
            },
          };
        },
      }),
    };
  }
}

function parse(toml: string): Config {
  const outcome = parseConfig({
    file: { path: "krane.toml", text: toml },
    env: {},
    flags: {},
    randomId: () => "aB3dE6gH",
  });
  if (outcome.kind === "valid") return outcome.config;
  throw new Error(renderProblems(outcome.problems));
}
