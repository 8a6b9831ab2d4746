// Finds the binaries of a real control plane: provided, cached or freshly built. If they
// are not available, the reason is returned as a value, not thrown, because a machine
// without Go still runs every other test.

import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { missingFiles } from "./binary-folder.ts";
import { GoCommandError, loadGoToolchain } from "./go-command.ts";
import { buildKube } from "./kube-build.ts";
import { buildSteps, isOlderGo, loadCacheKey, loadNeededGoVersion } from "./kube-recipe.ts";

export type KubeBinaries =
  | { readonly kind: "ready"; readonly dir: string }
  | {
      readonly kind: "missing";
      /** What is missing and how to get it, on one line. */
      readonly what: string;
      /** Whether this machine has Go, so that CI can tell a skip from a misconfiguration. */
      readonly goPresent: boolean;
    };

export interface ResolveOptions {
  readonly report: (line: string) => void;
}

const files = buildSteps.map(({ file }) => file);
const toolsDir = fileURLToPath(new URL(".", import.meta.url));

/** `KUBEBUILDER_ASSETS` wins; otherwise the cache, which is filled when Go is on the PATH. */
export async function resolveKubeBinaries(
  env: NodeJS.ProcessEnv,
  options: ResolveOptions,
  signal: AbortSignal,
): Promise<KubeBinaries> {
  const go = await loadGoToolchain(env, signal);
  const goPresent = go.kind === "found";
  const assets = env["KUBEBUILDER_ASSETS"];
  if (assets !== undefined && assets !== "") {
    return resolveAssets(assets, goPresent);
  }
  const needed = await loadNeededGoVersion(toolsDir);
  if (go.kind === "absent") {
    const what = `go is not on the PATH; install Go ${needed} or newer (https://go.dev/dl), or point KUBEBUILDER_ASSETS at a folder with ${files.join(", ")}`;
    return { kind: "missing", what, goPresent };
  }
  if (isOlderGo(go.version, needed)) {
    const what = `the go on the PATH is ${go.version}, and the pinned Kubernetes needs ${needed}; install a newer one (https://go.dev/dl)`;
    return { kind: "missing", what, goPresent };
  }
  const dir = join(cacheRoot(env), await loadCacheKey(toolsDir, go.version));
  if ((await missingFiles(dir, files)).length > 0) {
    try {
      await buildKube({ toolsDir, targetDir: dir, env, report: options.report }, signal);
    } catch (error) {
      if (error instanceof GoCommandError && error.isDownloadFailure) {
        const what = `the Go modules could not be downloaded (${lastLine(error.message)}); run \`make kube\` once with a network`;
        return { kind: "missing", what, goPresent };
      }
      throw error;
    }
  }
  return { kind: "ready", dir };
}

async function resolveAssets(dir: string, goPresent: boolean): Promise<KubeBinaries> {
  const missing = await missingFiles(dir, files);
  if (missing.length === 0) {
    return { kind: "ready", dir };
  }
  const what = `KUBEBUILDER_ASSETS=${dir} lacks ${missing.join(", ")}; add them, or unset it to build them with Go`;
  return { kind: "missing", what, goPresent };
}

function cacheRoot(env: NodeJS.ProcessEnv): string {
  const configured = env["XDG_CACHE_HOME"];
  const base = configured !== undefined && configured !== "" ? configured : join(homedir(), ".cache");
  return join(base, "krane", "kube");
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
