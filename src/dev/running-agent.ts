// Runs the agent of `krane dev`: the same run() as in production, with a configuration read by the same parser, so
// that what works here works there.
import type { AgentDeps } from "../agent/agent-deps.ts";
import { run } from "../agent/run.ts";
import { linkSignals } from "../concurrency/abort.ts";
import type { Config } from "../config/config.ts";
import { parseConfig } from "../config/parse.ts";
import { renderProblems } from "../config/render.ts";
import { explainListenFailure, ServiceError } from "../http/service-error.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import { devRegion } from "./scenario.ts";

export interface DevAgentOptions {
  readonly rpcPort: number;
  readonly listenHost: string;
  /** 0 turns it off. */
  readonly metricsPort: number;
  readonly controlUrl: string;
  readonly controlToken: string;
  /** Of the vault, which the control plane's port serves too. */
  readonly vaultToken: string;
  readonly agentToken: string;
  readonly kubeconfigPath: string;
  /** Without this, nothing would run on a cluster without Cilium. */
  readonly networkPolicy: Config["isolation"]["networkPolicy"];
}

function agentConfig(options: DevAgentOptions): Config {
  const flags = {
    "instance-id": "ins_dev",
    region: devRegion,
    "rpc-port": String(options.rpcPort),
    "listen-host": options.listenHost,
    "prometheus-port": String(options.metricsPort),
    "control-plane-url": options.controlUrl,
    "control-plane-bearer": options.controlToken,
    "vault-url": options.controlUrl,
    "vault-token": options.vaultToken,
    "kubernetes-kubeconfig": options.kubeconfigPath,
    "agent-token": options.agentToken,
    "isolation-network-policy": options.networkPolicy,
    "logs-enabled": "true",
  };
  const outcome = parseConfig({ env: {}, flags, randomId: () => "kraneDev" });
  if (outcome.kind === "valid") return outcome.config;
  throw new TypeError(`the configuration of krane dev is invalid: ${renderProblems(outcome.problems)}`);
}

/** Resolves once the agent has started. A failed start leaves nothing running. */
export function agentStep(options: DevAgentOptions, deps: AgentDeps): LifecycleStep {
  return {
    name: "agent",
    async start(signal) {
      const stopping = linkSignals(signal);
      let markStarted: () => void = () => undefined;
      const started = new Promise<void>((resolve) => {
        markStarted = resolve;
      });
      const ended = run(agentConfig(options), { ...deps, onStarted: markStarted }, stopping.signal);
      try {
        await Promise.race([started, ended]);
        if (stopping.signal.aborted) await ended;
      } catch (error) {
        throw inTermsOfFlags(error, options);
      } finally {
        stopping.release();
      }
      signal.throwIfAborted();
      let hasFailed = false;
      const failed = new Promise<never>((_, reject) => {
        ended.catch((error: unknown) => {
          if (stopping.signal.aborted) return;
          hasFailed = true;
          reject(error);
        });
      });
      return {
        failed,
        async stop() {
          // Its error has been reported already.
          if (hasFailed) return;
          stopping.abort();
          await ended;
        },
      };
    },
  };
}

/** Replaces the agent's setting names, which a user of `krane dev` has never seen, by flags. */
function inTermsOfFlags(error: unknown, { rpcPort, metricsPort }: DevAgentOptions): unknown {
  if (!(error instanceof ServiceError) || !(error.cause instanceof Error)) return error;
  const isRpc = error.message.startsWith("rpc_port");
  const [flag, port] = isRpc ? ["--rpc-port", rpcPort] : ["--metrics-port", metricsPort];
  return explainListenFailure({ setting: String(flag), port: Number(port) }, error.cause);
}
