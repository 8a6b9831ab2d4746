// The files of `krane dev`: a kubeconfig and a contexts file. Their paths are the same in every run, so that KUBECONFIG
// and KRANE_CONFIG in an open shell stay valid.
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolders } from "../server/embedded/new-folders.ts";
import type { Environment } from "./io.ts";

/** Undefined if neither variable is set. The port keeps concurrent runs apart. */
export function kubeconfigPath(env: Environment, kubePort: number): string | undefined {
  const base = env["XDG_STATE_HOME"] || (env["HOME"] && join(env["HOME"], ".local", "state"));
  return base ? join(base, "krane", `dev-${kubePort}.kubeconfig`) : undefined;
}

/** The contexts file next to a kubeconfig of `krane dev`. */
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
