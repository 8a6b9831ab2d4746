// The flags of krane dev.
import { type Command, InvalidArgumentError, Option } from "commander";

export interface DevFlags {
  readonly headless?: true;
  readonly kubeconfig?: string;
  readonly writeKubeconfig?: string;
  readonly logFile?: string;
  readonly kubePort: number;
  readonly controlPort: number;
  readonly rpcPort: number;
  readonly metricsPort: number;
}

const examples = `
Examples:
  krane dev                                   look and play; ? explains the keys
  krane dev --headless | tee changes.txt      one line per change, until Ctrl-C
  krane dev --kubeconfig ~/.kube/config       on a cluster of your own that no other krane looks after
  krane dev --rpc-port 0 --metrics-port 0 --control-port 0 --kube-port 0
                                              beside another one, on ports that are free

It says at its start which KUBECONFIG leads kubectl to its cluster, and which KRANE_CONFIG leads krane's own
commands to its control plane. q or Ctrl-C stops it and leaves nothing behind, except on a cluster of your
own: there the namespace krane-dev stays.
`;

export function addDevOptions(command: Command): Command {
  const port = (name: string, fallback: number, what: string) =>
    new Option(`--${name} <port>`, `${what}; 0 takes a free one`).default(fallback).argParser(parsePort);
  return command
    .option("--headless", "print one line per change instead of a screen (always so without a terminal)")
    .option("--kubeconfig <path>", "use this cluster instead of one within the process")
    .option("--write-kubeconfig <path>", "where to write the kubeconfig of the cluster within the process")
    .option("--log-file <path>", "append the log of the agent to this file (otherwise it is dropped)")
    .addOption(port("rpc-port", 8070, "the agent: health and AgentService"))
    .addOption(port("metrics-port", 9090, "the agent's metrics"))
    .addOption(port("control-port", 7091, "the control plane"))
    .addOption(port("kube-port", 7443, "the Kubernetes API within the process"))
    .addHelpText("after", examples);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a port from 0 to 65535.");
}
