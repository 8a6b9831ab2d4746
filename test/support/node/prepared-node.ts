// What a real node and what is installed on it need before its box starts, which has no network: binaries, images, Helm and
// Cilium's definitions. Or the reason why it cannot be.

import { dirname } from "node:path";
import { DebianPackagesError } from "../../../tools/debian-tool.ts";
import { GoCommandError } from "../../../tools/go-command.ts";
import { helm, resolveGoTool } from "../../../tools/go-tool.ts";
import { resolveKubeBinaries } from "../../../tools/kube-binaries.ts";
import { resolveNodeBinaries } from "../../../tools/node-binaries.ts";
import { loadClusterwideDefinition } from "../cluster/published-definitions.ts";
import { resolveNodeImages } from "./images.ts";
import { inspectMachine, installPackages, type Machine } from "./machine.ts";
import type { RealNodeOptions } from "./real-node.ts";

export type PreparedNode =
  | { readonly kind: "ready"; readonly options: RealNodeOptions; readonly helmDir: string }
  | {
      readonly kind: "missing";
      /** What is missing and how to get it, on one line. */
      readonly what: string;
      /** Whether this machine could run a node, so that CI can tell a skip from a misconfiguration. */
      readonly ableMachine: boolean;
    };

/** As root in CI it installs the missing Debian packages itself. */
export async function prepareNode(
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
  signal: AbortSignal,
): Promise<PreparedNode> {
  const machine = await ableMachine(env, report);
  if (machine.kind !== "able") {
    return { kind: "missing", what: machine.what, ableMachine: machine.kind === "lacks-packages" };
  }
  const kube = await resolveKubeBinaries(env, { report }, signal);
  if (kube.kind === "missing") return { ...kube, ableMachine: kube.goPresent };
  const node = await resolveNodeBinaries(env, { report }, signal);
  if (node.kind === "missing") return { ...node, ableMachine: node.goPresent };
  const missing = (what: string): PreparedNode => ({ kind: "missing", what, ableMachine: true });
  try {
    const helmBinary = await resolveGoTool(helm, env, { report }, signal);
    if (helmBinary.kind === "missing") return missing(`helm: ${helmBinary.what}`);
    const definition = await loadClusterwideDefinition();
    if ("missing" in definition) return missing(definition.missing);
    const images = await resolveNodeImages(node.dir, { env, report }, signal);
    const options = { kubeDir: kube.dir, nodeDir: node.dir, images };
    return { kind: "ready", options, helmDir: dirname(helmBinary.path) };
  } catch (error) {
    if (error instanceof DebianPackagesError)
      return missing(`${error.message}; run \`make image\` once with a network`);
    if (error instanceof GoCommandError && error.isDownloadFailure)
      return missing("Cilium's Go module could not be downloaded; try again with a network");
    throw error;
  }
}

async function ableMachine(env: NodeJS.ProcessEnv, report: (line: string) => void): Promise<Machine> {
  const machine = await inspectMachine();
  if (machine.kind !== "lacks-packages" || env["CI"] !== "true") return machine;
  report(`node: installing ${machine.packages.join(", ")}`);
  try {
    await installPackages(machine.packages);
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim().split("\n").at(-1) : String(error);
    return { kind: "unable", what: `${machine.what} (tried: ${reason})` };
  }
  return inspectMachine();
}
