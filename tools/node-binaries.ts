// Finds the binaries of a real node in the cache, or builds them. If that is not possible, the reason is returned as a
// value, not thrown, because a machine without Go still runs every other test.

import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fillFolder, missingFiles } from "./binary-folder.ts";
import { GoCommandError, loadGoToolchain, loadModuleDir, runGo } from "./go-command.ts";
import { isOlderGo } from "./kube-recipe.ts";
import {
  loadNodeCacheKey,
  loadNodeGoVersion,
  type NodeStep,
  nodeBuildFlags,
  nodeSteps,
  type SourceEdit,
} from "./node-recipe.ts";

export type NodeBinaries =
  | { readonly kind: "ready"; readonly dir: string }
  /** What is missing and how to get it, on one line. */
  | { readonly kind: "missing"; readonly what: string; readonly goPresent: boolean };

interface Place {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

const toolsDir = fileURLToPath(new URL(".", import.meta.url));
const run = promisify(execFile);
const files = nodeSteps.map(({ file }) => file);

export async function resolveNodeBinaries(
  env: NodeJS.ProcessEnv,
  { report }: { readonly report: (line: string) => void },
  signal: AbortSignal,
): Promise<NodeBinaries> {
  const go = await loadGoToolchain(env, signal);
  const needed = await loadNodeGoVersion(toolsDir);
  if (go.kind === "absent" || isOlderGo(go.version, needed)) {
    const found = go.kind === "absent" ? "is not on the PATH" : `on the PATH is ${go.version}`;
    const what = `go ${found}; install Go ${needed} or newer (https://go.dev/dl)`;
    return { kind: "missing", what, goPresent: go.kind === "found" };
  }
  const cache = join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "krane", "node");
  const targetDir = join(cache, await loadNodeCacheKey(toolsDir, go.version));
  if ((await missingFiles(targetDir, files)).length > 0) {
    try {
      await build(targetDir, env, report, signal);
    } catch (error) {
      if (!(error instanceof GoCommandError && error.isDownloadFailure)) throw error;
      const what = "the Go modules of the node could not be downloaded; run `make node` once with a network";
      return { kind: "missing", what, goPresent: true };
    }
  }
  return { kind: "ready", dir: targetDir };
}

function build(
  targetDir: string,
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const announcement =
    "building a Kubernetes node from source; the first time takes about 5 to 10 minutes on two cores, because " +
    "containerd, the kubelet and gVisor are downloaded and compiled once and then kept";
  const steps = nodeSteps.map((step) => ({
    file: step.file,
    run: (target: string, until: AbortSignal) => runStep(step, target, env, until),
  }));
  return fillFolder({ name: "node", targetDir, announcement, steps, report }, signal);
}

async function runStep(
  step: NodeStep,
  target: string,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  const place = { cwd: join(toolsDir, step.folder), env };
  const compile = async (...extra: string[]) => {
    const flags = [...(await nodeBuildFlags(toolsDir, step.folder)), ...extra];
    await runGo(["build", ...flags, "-o", target, step.importPath], place, signal);
  };
  if (step.edit === undefined) return compile();
  // In the folder of the build, which the next one removes if this one is killed.
  const copy = `${target}.module`;
  await mkdir(copy);
  try {
    return await compile(`-modfile=${await copyWithEdit(step.edit, copy, place, signal)}`);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Copies the module, changes the copy, and returns a go.mod like that of the place that refers to it. */
async function copyWithEdit(
  edit: SourceEdit,
  folder: string,
  place: Place,
  signal: AbortSignal,
): Promise<string> {
  const source = join(folder, "source");
  // In the module cache everything is read-only, folders included.
  await run("cp", ["-r", "--no-preserve=mode", await loadModuleDir(edit.module, place, signal), source]);
  const path = join(source, edit.path);
  const parts = (await readFile(path, "utf8")).split(edit.before);
  if (parts.length !== 2) {
    throw new Error(`${edit.module} changed: ${edit.path} has ${parts.length - 1} lines "${edit.before}"`);
  }
  await writeFile(path, parts.join(edit.after));
  const modfile = join(folder, "go.mod");
  await writeFile(modfile, await readFile(join(place.cwd, "go.mod"), "utf8"));
  await writeFile(join(folder, "go.sum"), await readFile(join(place.cwd, "go.sum"), "utf8"));
  await runGo(["mod", "edit", `-replace=${edit.module}=${source}`, modfile], place, signal);
  return modfile;
}
