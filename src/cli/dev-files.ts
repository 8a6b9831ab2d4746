// The files of `krane dev`: a kubeconfig, in a place that stays the same from run to run, so that the
// KUBECONFIG of a shell that is open stays right.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Environment } from "./io.ts";

/** Undefined where the environment names no place of the user's own. The port keeps two runs apart. */
export function kubeconfigPath(env: Environment, kubePort: number): string | undefined {
  const base = env["XDG_STATE_HOME"] || (env["HOME"] && join(env["HOME"], ".local", "state"));
  return base ? join(base, "krane", `dev-${kubePort}.kubeconfig`) : undefined;
}

export async function writeTextFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, text, { mode: 0o600 });
}

export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true });
}
