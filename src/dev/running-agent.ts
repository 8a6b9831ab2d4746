// The agent of `krane dev`: the same run() as in production, with a configuration that is read by the same
// parser, so that what works here works there.
import type { AgentDeps } from "../agent/agent-deps.ts";
import { run } from "../agent/run.ts";
import type { Config } from "../config/config.ts";
import { parseConfig } from "../config/parse.ts";
import { renderProblems } from "../config/render.ts";
import { explainListenFailure, ServiceError } from "../http/service-error.ts";
import { devRegion } from "./scenario.ts";

export interface DevAgentOptions {
  readonly rpcPort: number;
  /** 0 for none. */
  readonly metricsPort: number;
  readonly controlUrl: string;
  readonly controlToken: string;
  readonly agentToken: string;
  readonly kubeconfigPath: string;
  /** A cluster without Cilium can show nothing otherwise. */
  readonly networkPolicy: Config["isolation"]["networkPolicy"];
}

export interface RunningAgent {
  /** Resolves after a clean stop; rejects when the agent failed. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

export function agentConfig(options: DevAgentOptions): Config {
  const flags = {
    "instance-id": "ins_dev",
    region: devRegion,
    "rpc-port": String(options.rpcPort),
    "prometheus-port": String(options.metricsPort),
    "control-plane-url": options.controlUrl,
    "control-plane-bearer": options.controlToken,
    "kubernetes-kubeconfig": options.kubeconfigPath,
    "agent-token": options.agentToken,
    "isolation-network-policy": options.networkPolicy,
  };
  const outcome = parseConfig({ env: {}, flags, randomId: () => "kraneDev" });
  if (outcome.kind === "valid") return outcome.config;
  throw new TypeError(`the configuration of krane dev is wrong: ${renderProblems(outcome.problems)}`);
}

/** Resolves when the agent has started, and rejects, with nothing left running, when it cannot. */
export async function startAgent(
  options: DevAgentOptions,
  deps: AgentDeps,
  signal: AbortSignal,
): Promise<RunningAgent> {
  const stopping = new AbortController();
  let markStarted: () => void = () => undefined;
  const started = new Promise<"started">((resolve) => {
    markStarted = () => resolve("started");
  });
  const ended = run(agentConfig(options), { ...deps, onStarted: markStarted }, stopping.signal);
  const onAbort = () => stopping.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const first = await Promise.race([started, ended.then(() => "ended" as const)]);
    if (first === "ended") signal.throwIfAborted();
  } catch (error) {
    throw inTermsOfFlags(error, options);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
  return {
    ended,
    stop() {
      stopping.abort();
      return ended;
    },
  };
}

/** The agent names its settings, which a user of `krane dev` has never seen. */
function inTermsOfFlags(error: unknown, { rpcPort, metricsPort }: DevAgentOptions): unknown {
  if (!(error instanceof ServiceError) || !(error.cause instanceof Error)) return error;
  const isRpc = error.message.startsWith("rpc_port");
  const [flag, port] = isRpc ? ["--rpc-port", rpcPort] : ["--metrics-port", metricsPort];
  return explainListenFailure(String(flag), Number(port), error.cause);
}
