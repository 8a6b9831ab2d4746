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
  krane dev                                   interactive; press ? for the keys
  krane dev --headless | tee changes.txt      one line per change, until Ctrl-C
  krane dev --kubeconfig ~/.kube/config       on your own cluster, if no other krane manages it
  krane dev --rpc-port 0 --metrics-port 0 --control-port 0 --kube-port 0
                                              next to another one, on free ports

At its start it prints the KUBECONFIG of its cluster, for kubectl, and the KRANE_CONFIG of its control plane,
for krane's own commands. q or Ctrl-C stops it and removes everything, except on your own cluster: there the
namespace krane-dev stays.
`;

export function addDevOptions(command: Command): Command {
  const port = (name: string, fallback: number, what: string) =>
    new Option(`--${name} <port>`, `${what}; 0 picks a free port`).default(fallback).argParser(parsePort);
  return command
    .option("--headless", "print one line per change instead of a screen (the default without a terminal)")
    .option("--kubeconfig <path>", "use this cluster instead of the embedded one")
    .option("--write-kubeconfig <path>", "where to write the kubeconfig of the embedded cluster")
    .option("--log-file <path>", "append the agent's log to this file (default: no log)")
    .addOption(port("rpc-port", 8070, "the agent's health endpoints and AgentService"))
    .addOption(port("metrics-port", 9090, "the agent's metrics"))
    .addOption(port("control-port", 7091, "the control plane"))
    .addOption(port("kube-port", 7443, "the embedded Kubernetes API"))
    .addHelpText("after", examples);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("Must be a port from 0 to 65535.");
}
