// A real krane process: the bundle, started by a test and stopped with it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { bundle } from "../../tools/bundle.ts";

export interface Exit {
  /** Undefined when a signal ended the process. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KraneProcess {
  readonly child: ChildProcess;
  readonly exit: Promise<Exit>;
}

/**
 * Bundles krane into a folder of its own; returns the program and what removes it. `make test` has just built
 * it, and says where, so that not every file bundles it again.
 */
export async function buildKrane(): Promise<{ program: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "krane-bundle-"));
  const program = join(folder, "krane");
  const built = process.env["KRANE_TEST_PROGRAM"];
  if (built === undefined) await bundle({ outfile: program });
  else await copyFile(built, program);
  return { program, remove: () => rm(folder, { recursive: true }) };
}

/**
 * Runs until it exits or the test ends. The environment is empty but for PATH and what is given. With a channel it can be
 * sent messages.
 */
export function startKrane(
  t: TestContext,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { channel = false } = {},
): KraneProcess {
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe", ...(channel ? (["ipc"] as const) : [])],
    env: { PATH: process.env["PATH"], ...env },
    cwd: tmpdir(),
  });
  t.after(() => child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  const exit = once(child, "close").then(([code]) => ({ code: code ?? undefined, stdout, stderr }));
  return { child, exit };
}

/** A configuration file with free ports and whatever is appended. */
export async function writeConfig(t: TestContext, more = "") {
  const folder = await mkdtemp(join(tmpdir(), "krane-config-"));
  t.after(() => rm(folder, { recursive: true }));
  const [rpcPort, metricsPort] = await Promise.all([freePort(), freePort()]);
  const path = join(folder, "krane.toml");
  await writeFile(
    path,
    `region = "test.local"
rpc_port = ${rpcPort}
[control]
url = "http://127.0.0.1:1"
token = "not-a-real-token"
[observability.metrics]
prometheus_port = ${metricsPort}
${more}
`,
  );
  return { folder, path, rpcPort, metricsPort };
}

/** Somebody else could take it meanwhile; ports are handed out in turn, so that is rare. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  server.close();
  await once(server, "close");
  return address.port;
}
