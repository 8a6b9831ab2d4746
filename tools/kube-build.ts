// Builds the binaries of the recipe into a folder.
//
// The folder appears under its final name only when it is complete: everything
// is made beside it and renamed at the end, so a build that was killed never
// looks finished.

import { chmod, copyFile, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withBuildLock } from "./build-lock.ts";
import { runGo } from "./go-command.ts";
import { type BuildStep, buildFlags, buildSteps, loadKubernetesVersion } from "./kube-recipe.ts";

export interface BuildOptions {
  readonly toolsDir: string;
  readonly targetDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly report: (line: string) => void;
}

const reportEveryMs = 30_000;

export async function buildKube(options: BuildOptions, signal: AbortSignal): Promise<void> {
  const { targetDir, report } = options;
  await withBuildLock(
    `${targetDir}.lock`,
    () => report("kube: another process is building the same binaries; waiting for it"),
    async () => {
      // The previous holder of the lock may have finished the same build.
      if ((await missingFiles(targetDir)).length > 0) {
        await rm(targetDir, { recursive: true, force: true });
        await buildAll(options, signal);
      }
    },
    signal,
  );
}

async function buildAll(options: BuildOptions, signal: AbortSignal): Promise<void> {
  const { targetDir, report } = options;
  await removeAbandonedBuilds(targetDir);
  const workDir = `${targetDir}.building-${process.pid}`;
  report(
    "kube: building a Kubernetes control plane from source; the first time takes about 6 to 10 minutes on two cores, " +
      "because Kubernetes, etcd and kwok are downloaded and compiled once and then kept",
  );
  const version = await loadKubernetesVersion(options.toolsDir);
  const begun = Date.now();
  try {
    await mkdir(workDir, { recursive: true });
    for (const [index, step] of buildSteps.entries()) {
      const label = `kube: [${index + 1}/${buildSteps.length}] ${step.file}`;
      await timed(label, report, () => runStep(step, version, workDir, options, signal));
    }
    await publish(workDir, targetDir);
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
  report(`kube: Kubernetes ${version} built in ${secondsSince(begun)} s`);
}

async function runStep(
  step: BuildStep,
  kubernetesVersion: string,
  workDir: string,
  options: BuildOptions,
  signal: AbortSignal,
): Promise<void> {
  const place = { cwd: join(options.toolsDir, step.folder), env: options.env };
  const target = join(workDir, step.file);
  if (step.from.kind === "main-package") {
    const flags = buildFlags(step.folder, kubernetesVersion);
    await runGo(["build", ...flags, "-o", target, step.from.importPath], place, signal);
    return;
  }
  const downloaded: unknown = JSON.parse(
    await runGo(["mod", "download", "-json", step.from.module], place, signal),
  );
  if (typeof downloaded !== "object" || downloaded === null || !("Dir" in downloaded)) {
    throw new Error(`go mod download did not say where ${step.from.module} is`);
  }
  await copyFile(join(String(downloaded.Dir), step.from.path), target);
  // The module cache is read-only; a read-only copy could not be deleted in the usual way.
  await chmod(target, 0o644);
}

async function timed(
  label: string,
  report: (line: string) => void,
  task: () => Promise<void>,
): Promise<void> {
  const begun = Date.now();
  report(`${label} ...`);
  const ticker = setInterval(() => report(`${label} ... ${secondsSince(begun)} s`), reportEveryMs);
  try {
    await task();
  } finally {
    clearInterval(ticker);
  }
  report(`${label} done in ${secondsSince(begun)} s`);
}

// A second holder of the lock may have filled the target meanwhile; its files are
// equivalent.
async function publish(workDir: string, targetDir: string): Promise<void> {
  try {
    await rename(workDir, targetDir);
  } catch (error) {
    if ((await missingFiles(targetDir)).length > 0) {
      throw error;
    }
  }
}

async function removeAbandonedBuilds(targetDir: string): Promise<void> {
  const parent = dirname(targetDir);
  const prefix = `${basename(targetDir)}.building-`;
  for (const name of await readdir(parent)) {
    if (name.startsWith(prefix)) {
      await rm(join(parent, name), { recursive: true, force: true });
    }
  }
}

/** Which files of the recipe a folder lacks. */
export async function missingFiles(dir: string): Promise<readonly string[]> {
  const found = await Promise.all(
    buildSteps.map((step) =>
      stat(join(dir, step.file)).then(
        (entry) => entry.isFile(),
        () => false,
      ),
    ),
  );
  return buildSteps.filter((_, index) => found[index] !== true).map((step) => step.file);
}

function secondsSince(begun: number): number {
  return Math.round((Date.now() - begun) / 1000);
}
