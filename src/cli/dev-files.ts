// The files of `krane dev`: a kubeconfig and a contexts file, in a place that stays the same from run to run,
// so that the KUBECONFIG and KRANE_CONFIG of a shell that is open stay right.
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolders } from "../server/embedded/new-folders.ts";
import type { Environment } from "./io.ts";

/** Undefined where the environment names no place of the user's own. The port keeps two runs apart. */
export function kubeconfigPath(env: Environment, kubePort: number): string | undefined {
  const base = env["XDG_STATE_HOME"] || (env["HOME"] && join(env["HOME"], ".local", "state"));
  return base ? join(base, "krane", `dev-${kubePort}.kubeconfig`) : undefined;
}

/** The contexts file that stands beside a kubeconfig of `krane dev`. */
export function cliContextPath(kubeconfig: string): string {
  return `${kubeconfig.replace(/\.kubeconfig$/, "")}.cli.toml`;
}

export async function writeTextFile(path: string, text: string): Promise<void> {
  await makeFolders(dirname(path));
  await writeFile(path, text, { mode: 0o600 });
}

export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true });
}
