// Runs the `go` command and keeps the end of its output for error messages.

import { spawn } from "node:child_process";
import { goBuildEnv } from "./kube-recipe.ts";

const outputCharsMax = 1_000_000;

/** `go` failed; `output` is its stderr. */
export class GoCommandError extends Error {
  readonly output: string;

  constructor(args: readonly string[], output: string) {
    const end = output.trim().split("\n").slice(-15).join("\n");
    super(`go ${args.slice(0, 2).join(" ")} failed:\n${end}`);
    this.name = "GoCommandError";
    this.output = output;
  }

  // An unreachable module proxy is a problem of the machine, unlike code that does not
  // compile, which is a problem of the pins.
  get isDownloadFailure(): boolean {
    return /dial tcp|no such host|i\/o timeout|TLS handshake|connection re(?:fused|set)|GOPROXY=off|proxyconnect/.test(
      this.output,
    );
  }
}

export type GoToolchain = { readonly kind: "found"; readonly version: string } | { readonly kind: "absent" };

export async function loadGoToolchain(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<GoToolchain> {
  try {
    const version = await runGo(["env", "GOVERSION"], { cwd: process.cwd(), env }, signal);
    return { kind: "found", version: version.trim() };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      return { kind: "absent" };
    }
    throw error;
  }
}

/** Resolves with stdout; rejects with GoCommandError when go fails, or with the cause when it cannot start. */
export function runGo(
  args: readonly string[],
  place: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("go", args, {
      cwd: place.cwd,
      env: { ...place.env, ...goBuildEnv },
      stdio: ["ignore", "pipe", "pipe"],
      signal,
    });
    const output = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        output[stream] = (output[stream] + text).slice(-outputCharsMax);
      });
    }
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) {
        resolve(output.stdout);
      } else {
        reject(new GoCommandError(args, output.stderr));
      }
    });
  });
}

/** Downloads a module that the go.mod of the place pins, and returns its folder in the module cache, which is read-only. */
export async function loadModuleDir(
  module: string,
  place: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  signal: AbortSignal,
): Promise<string> {
  const downloaded: unknown = JSON.parse(await runGo(["mod", "download", "-json", module], place, signal));
  if (typeof downloaded !== "object" || downloaded === null || !("Dir" in downloaded)) {
    throw new Error(`go mod download did not return the folder of ${module}`);
  }
  return String(downloaded.Dir);
}
