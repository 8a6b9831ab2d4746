// Builds the binaries of the control plane's recipe into a folder.

import { chmod, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { fillFolder } from "./binary-folder.ts";
import { loadModuleDir, runGo } from "./go-command.ts";
import { type BuildStep, buildFlags, buildSteps, loadKubernetesVersion } from "./kube-recipe.ts";

export interface BuildOptions {
  readonly toolsDir: string;
  readonly targetDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly report: (line: string) => void;
}

export async function buildKube(options: BuildOptions, signal: AbortSignal): Promise<void> {
  const { targetDir, report, toolsDir } = options;
  const version = await loadKubernetesVersion(toolsDir);
  const announcement =
    `building a Kubernetes ${version} control plane from source; the first time takes about 6 to 10 minutes on two ` +
    "cores, because Kubernetes, etcd and kwok are downloaded and compiled once and then kept";
  const steps = buildSteps.map((step) => ({
    file: step.file,
    run: (target: string, until: AbortSignal) => runStep(step, version, target, options, until),
  }));
  await fillFolder({ name: "kube", targetDir, announcement, steps, report }, signal);
}

async function runStep(
  step: BuildStep,
  kubernetesVersion: string,
  target: string,
  options: BuildOptions,
  signal: AbortSignal,
): Promise<void> {
  const place = { cwd: join(options.toolsDir, step.folder), env: options.env };
  if (step.from.kind === "main-package") {
    const flags = buildFlags(step.folder, kubernetesVersion);
    await runGo(["build", ...flags, "-o", target, step.from.importPath], place, signal);
    return;
  }
  await copyFile(join(await loadModuleDir(step.from.module, place, signal), step.from.path), target);
  // The module cache is read-only; a read-only copy could not be deleted in the usual way.
  await chmod(target, 0o644);
}
