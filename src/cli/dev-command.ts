// krane dev: runs a whole region in one process, to try out krane.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { createSystemClock } from "../concurrency/clock.ts";
import { createSystemRandom } from "../concurrency/random.ts";
import type { ProcessEnv } from "../config/expand.ts";
import type { ClusterChoice, DevDeps, DevOptions, DevRegion } from "../dev/dev-region.ts";
import { createCommandRunner } from "../kube/command-runner.ts";
import {
  type LifecycleOptions,
  type LifecycleStack,
  type LifecycleStep,
  runLifecycle,
} from "../runtime/lifecycle.ts";
import { makeFolders } from "../server/embedded/new-folders.ts";
import { createLog, type Log } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import { CommandError } from "./command-error.ts";
import { loadDashboard } from "./dashboard-files.ts";
import type { DevFlags } from "./dev-options.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { listenForStop, type StopRequest } from "./process/stop-request.ts";

// The agent alone may take 30 s to stop.
const lifecycle: LifecycleOptions = { stopTimeoutMs: 40_000, forceTimeoutMs: 5_000 };

export async function runDev(command: Command, env: ProcessEnv, io: Io, build: BuildInfo): Promise<number> {
  const flags = command.opts<DevFlags>();
  const stop = listenForStop(io);
  try {
    const options = await devOptions(flags, env);
    if (options === undefined) {
      io.stderr.write("krane: neither HOME nor XDG_STATE_HOME is set; pass --write-kubeconfig <path>\n");
      return exitCodes.usage;
    }
    const { startDevRegion } = await import("../dev/dev-region.ts");
    const deps = devDeps(flags, env, io, build);
    const start = async (stack: LifecycleStack, signal: AbortSignal) => {
      const region = await startDevRegion(options, deps, stack, signal);
      await stack.start(viewStep(region, flags, env, io, stop), signal);
    };
    await runLifecycle(start, lifecycle, deps, stop.signal);
    io.stdout.write(farewell(options.cluster));
    return exitCodes.ok;
  } finally {
    stop.release();
  }
}

/** Stops first, so that the terminal is restored before anything else is printed. */
function viewStep(
  region: DevRegion,
  flags: DevFlags,
  env: ProcessEnv,
  io: Io,
  stop: StopRequest,
): LifecycleStep {
  return {
    name: "view",
    async start() {
      const shown = show(region, flags, env, io, stop);
      return {
        failed: shown.then(() => new Promise<never>(() => undefined)),
        async stop() {
          stop.abort();
          await shown.catch(() => undefined);
        },
      };
    },
  };
}

async function show(
  region: DevRegion,
  flags: DevFlags,
  env: ProcessEnv,
  io: Io,
  stop: StopRequest,
): Promise<void> {
  const { LiveSession, runHeadless } = await import("../dev/session.ts");
  const clock = createSystemClock();
  const terminal = flags.headless ? undefined : io.terminal?.();
  if (terminal === undefined) {
    const print = (line: string) => {
      io.stdout.write(`${line}\n`);
      // `krane dev | head`: stop once the reader is gone.
      if (io.stdout.backlogBytes === Number.POSITIVE_INFINITY) stop.abort();
    };
    for (const [name, url] of Object.entries(region.urls)) print(`${name}: ${url}`);
    if (region.urls.dashboard !== undefined) print(`dashboard token: ${region.adminToken.reveal()}`);
    print(`export KUBECONFIG=${region.cluster.kubeconfigPath}`);
    if (region.cliContextPath !== undefined) print(`export KRANE_CONFIG=${region.cliContextPath}`);
    return runHeadless(region, print, clock, stop.signal);
  }
  const colours = !env["NO_COLOR"];
  const held = terminal.hold({
    onKey(key) {
      if (key === "q" || key === "ctrl-c") stop.abort();
      else session.press(key, stop.signal);
    },
    onResize: () => session.redraw(),
  });
  const screen = { size: () => ({ ...held.size(), colours }), draw: held.draw };
  const session = new LiveSession(region, screen, clock);
  try {
    await session.run(stop.signal);
  } finally {
    held.release();
  }
}

async function devOptions(flags: DevFlags, env: ProcessEnv): Promise<DevOptions | undefined> {
  const ports = await chooseFreePorts({
    kube: flags.kubePort,
    control: flags.controlPort,
    rpc: flags.rpcPort,
    metrics: flags.metricsPort,
  });
  const path = flags.writeKubeconfig ?? kubeconfigPath(env, ports.kube);
  const context = path === undefined ? {} : { cliContextPath: cliContextPath(path) };
  if (flags.kubeconfig !== undefined) {
    return { ports, cluster: { kind: "real", kubeconfigPath: flags.kubeconfig }, ...context };
  }
  if (path === undefined) return undefined;
  return { ports, cluster: { kind: "embedded", kubeconfigPath: path }, ...context };
}

function devDeps(flags: DevFlags, env: ProcessEnv, io: Io, build: BuildInfo): DevDeps {
  return {
    clock: createSystemClock(),
    random: createSystemRandom(),
    log: createDevLog(flags.logFile, build),
    build,
    env,
    readTextFile: io.readTextFile,
    runCommand: createCommandRunner(env),
    createToken: () => randomBytes(24).toString("hex"),
    dashboard: loadDashboard(),
    ...(io.openUrl && { openUrl: io.openUrl }),
    writeTextFile,
    removeFile,
  };
}

/** Throws if the file cannot be written; later failures only drop lines. */
function createDevLog(path: string | undefined, { version }: BuildInfo): Log {
  if (path !== undefined) requireWritable(path);
  const instance = { id: "ins_dev", region: "local.dev", version };
  return createLog(
    { level: "info", instance, sampling: { rate: 1, slowThresholdMs: 1_000 } },
    {
      clock: createSystemClock(),
      random: createSystemRandom(),
      write(line) {
        if (path !== undefined) appendFileSync(path, line);
      },
    },
  );
}

function requireWritable(path: string): void {
  try {
    appendFileSync(path, "");
  } catch (cause) {
    // Node's message without the system call.
    const reason = cause instanceof Error ? cause.message.replace(/^\w+: |, \w+ '.*'$/g, "") : String(cause);
    throw new CommandError("failed", `--log-file: cannot write ${path}: ${reason}`, { cause });
  }
}

function farewell({ kind, kubeconfigPath: path }: ClusterChoice): string {
  if (kind === "embedded") return "stopped\n";
  return `stopped; its objects stay in the cluster; to delete them: kubectl --kubeconfig ${path} delete namespace krane-dev\n`;
}

// The files of `krane dev`: a kubeconfig and a contexts file. Their paths are the same in every run, so that KUBECONFIG
// and KRANE_CONFIG in an open shell stay valid.

/** Undefined if neither variable is set. The port keeps concurrent runs apart. */
export function kubeconfigPath(env: ProcessEnv, kubePort: number): string | undefined {
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

// Picks free ports for `krane dev` with port 0: its agent needs fixed port numbers in its configuration. Another process
// may take a port in between; the start then fails with the usual error.

/** Replaces every 0 with a different free port. */
export async function chooseFreePorts<T extends Readonly<Record<string, number>>>(ports: T): Promise<T> {
  const held: Server[] = [];
  const chosen: Record<string, number> = {};
  try {
    for (const [name, port] of Object.entries(ports)) {
      chosen[name] = port === 0 ? await holdPort(held) : port;
    }
  } finally {
    for (const server of held) {
      server.close();
      await once(server, "close");
    }
  }
  return chosen as T;
}

async function holdPort(held: Server[]): Promise<number> {
  const server = createServer().listen(0);
  await once(server, "listening");
  held.push(server);
  return (server.address() as AddressInfo).port;
}
