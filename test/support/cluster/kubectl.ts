// The pinned kubectl, cut off from the user's own configuration and caches.

import { spawn } from "node:child_process";
import { join } from "node:path";
import type { ClusterFacts } from "./facts.ts";

export interface KubectlOptions {
  /** For `-f -`. */
  readonly input?: string;
  /** Default: the administrator. */
  readonly as?: "admin" | "agent";
  readonly signal?: AbortSignal;
}

/** Resolves with stdout; rejects with what kubectl said. */
export function runKubectl(
  facts: ClusterFacts,
  args: readonly string[],
  options: KubectlOptions = {},
): Promise<string> {
  const kubeconfig = options.as === "agent" ? facts.agentKubeconfigPath : facts.kubeconfigPath;
  return new Promise((resolve, reject) => {
    const child = spawn(join(facts.binariesDir, "kubectl"), args, {
      env: {
        PATH: process.env["PATH"],
        HOME: facts.dir,
        KUBECONFIG: kubeconfig,
        KUBECACHEDIR: join(facts.dir, "kubectl-cache"),
      },
      stdio: ["pipe", "pipe", "pipe"],
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) {
        resolve(stdout);
      } else {
        reject(new Error(`kubectl ${args.join(" ")}: ${stderr.trim() || `exit code ${code}`}`));
      }
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
  });
}
