// Builds a Go program that tests use: pinned by the go.mod of its folder, built once into the cache. If it cannot
// be built, the reason is returned as a value, as for the Kubernetes binaries: a machine without Go runs every
// other test.

import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withBuildLock } from "./build-lock.ts";
import { GoCommandError, loadGoToolchain, runGo } from "./go-command.ts";
import { goBuildEnv, isOlderGo } from "./kube-recipe.ts";

export interface GoTool {
  /** The folder under tools/ whose go.mod pins it, which is also its name. */
  readonly folder: string;
  readonly importPath: string;
}

export type GoBinary =
  | { readonly kind: "ready"; readonly path: string }
  /** What is missing and how to get it, on one line. */
  | { readonly kind: "missing"; readonly what: string };

export const grpcurl: GoTool = {
  folder: "grpcurl",
  importPath: "github.com/fullstorydev/grpcurl/cmd/grpcurl",
};

/** Renders and checks the chart in deploy/. */
export const helm: GoTool = { folder: "helm", importPath: "helm.sh/helm/v4/cmd/helm" };

/** Checks the workflows in .github/. */
export const actionlint: GoTool = {
  folder: "actionlint",
  importPath: "github.com/rhysd/actionlint/cmd/actionlint",
};

/** An S3 server, for the vault's storage. */
export const s3Server: GoTool = { folder: "s3", importPath: "github.com/versity/versitygw/cmd/versitygw" };

const flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"];

export async function resolveGoTool(
  tool: GoTool,
  env: NodeJS.ProcessEnv,
  options: { readonly report: (line: string) => void },
  signal: AbortSignal,
): Promise<GoBinary> {
  const moduleDir = fileURLToPath(new URL(tool.folder, import.meta.url));
  const go = await loadGoToolchain(env, signal);
  const pins = await readFile(join(moduleDir, "go.mod"), "utf8");
  const needed = /^go\s+(\S+)/m.exec(pins)?.[1] ?? "1.0";
  if (go.kind === "absent" || isOlderGo(go.version, needed)) {
    const found = go.kind === "absent" ? "is not on the PATH" : `on the PATH is ${go.version}`;
    return { kind: "missing", what: `go ${found}; install Go ${needed} or newer (https://go.dev/dl)` };
  }
  const sums = await readFile(join(moduleDir, "go.sum"), "utf8");
  const path = join(cacheRoot(env, tool), cacheKey(tool, [go.version, pins, sums]), tool.folder);
  const report = (line: string) => options.report(`${tool.folder}: ${line}`);
  const build = async () => {
    if (await isFile(path)) return;
    report("building it from source, once");
    await buildTo(path, tool, { cwd: moduleDir, env }, signal);
  };
  try {
    const onWait = () => report("another process is building it; waiting");
    await withBuildLock(`${dirname(path)}.lock`, onWait, build, signal);
  } catch (error) {
    if (!(error instanceof GoCommandError && error.isDownloadFailure)) throw error;
    return { kind: "missing", what: "its Go modules could not be downloaded; try again with a network" };
  }
  return { kind: "ready", path };
}

/** Complete or absent: a build that was killed must not look finished. */
async function buildTo(
  path: string,
  { importPath }: GoTool,
  place: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  signal: AbortSignal,
): Promise<void> {
  const unfinished = `${path}.building-${process.pid}`;
  await mkdir(dirname(path), { recursive: true });
  try {
    await runGo(["build", ...flags, "-o", unfinished, importPath], place, signal);
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Everything that changes the result of a build is part of the name. */
function cacheKey({ importPath }: GoTool, pins: readonly string[]): string {
  const facts = [process.platform, process.arch, ...Object.values(goBuildEnv), ...flags, importPath, ...pins];
  return createHash("sha256").update(facts.join("\n")).digest("hex").slice(0, 12);
}

function cacheRoot(env: NodeJS.ProcessEnv, { folder }: GoTool): string {
  return join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "krane", folder);
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (entry) => entry.isFile(),
    () => false,
  );
}
