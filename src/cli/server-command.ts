// krane server: runs the control plane until it gets a stop signal. krane server new-incarnation: starts a new incarnation,
// after a restore that the server cannot notice. Their code is imported only when they run, to keep the start of the agent
// fast.
import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { createSystemClock } from "../concurrency/clock.ts";
import { createSystemRandom } from "../concurrency/random.ts";
import type { ProcessEnv } from "../config/expand.ts";
import type { ServerConfig } from "../server/config/server-config.ts";
import type { StartedServer } from "../server/run-server.ts";
import { createLog, type Log } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import { loadDashboard } from "./dashboard-files.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Io, Output } from "./io.ts";
import { createProcessLog } from "./process/process-log.ts";
import { listenForStop } from "./process/stop-request.ts";
import { loadServerConfig } from "./server-options.ts";

export async function runServerCommand(
  command: Command,
  env: ProcessEnv,
  io: Io,
  build: BuildInfo,
): Promise<number> {
  const stop = listenForStop(io);
  try {
    const config = await loadServerConfig(command, env, io, stop.signal);
    if (config === undefined) return exitCodes.config;
    const { runServer } = await import("../server/run-server.ts");
    const deps = {
      clock: createSystemClock(),
      random: createSystemRandom(),
      log: createServerLog(config, build, io.stdout, env),
      build,
      uid: process.getuid?.(),
      readTextFile: io.readTextFile,
      createToken: () => randomBytes(24).toString("hex"),
      dashboard: loadDashboard(),
      progress: (line: string) => io.stderr.write(`${line}\n`),
      onStarted: (started: StartedServer) => io.stderr.write(renderStarted(started, build)),
    };
    await runServer(config, deps, stop.signal);
    io.stderr.write("stopped\n");
    return exitCodes.ok;
  } finally {
    stop.release();
  }
}

/** What people read when the server has started. */
export function renderStarted(
  started: Omit<StartedServer, "store" | "port">,
  { version }: Pick<BuildInfo, "version">,
): string {
  const { url, metricsUrl, regions, tokensPath, hasAdminApi, cliContextPath, dashboardUrl } = started;
  const shown = regions.slice(0, 3).join(", ");
  const more = regions.length > 3 ? ` and ${regions.length - 3} more` : "";
  const tokens = tokensPath === undefined ? "" : `\n  tokens          ${tokensPath}`;
  const commands =
    cliContextPath === undefined ? "" : `\n  commands        export KRANE_CONFIG=${cliContextPath}`;
  return `
krane ${version} is serving ${shown}${more}

  agents          ${url}
  admin API       ${hasAdminApi ? url : "off (set server.admin_tokens_file)"}
  dashboard       ${dashboardUrl ?? "off"}
  health          ${url}/health/ready
  metrics         ${metricsUrl ?? "off (set observability.metrics.prometheus_port)"}${tokens}${commands}

Press Ctrl-C to stop, twice to stop immediately.

`;
}

function createServerLog(
  { logLevel: level, logSampling, listen }: ServerConfig,
  { version }: BuildInfo,
  stdout: Output,
  env: ProcessEnv,
): Log {
  const instance = { id: `server-${listen.port}`, region: "all", version };
  const { rate: sampleRate, slowThresholdMs } = logSampling;
  return createProcessLog({ instance, logging: { level, sampleRate, slowThresholdMs } }, stdout, env);
}

export async function runNewIncarnationCommand(
  command: Command,
  env: ProcessEnv,
  io: Io,
  { version }: BuildInfo,
): Promise<number> {
  const stop = listenForStop(io);
  try {
    const config = await loadServerConfig(command, env, io, stop.signal);
    if (config === undefined) return exitCodes.config;
    const { startNewIncarnation } = await import("../server/server-database.ts");
    const clock = createSystemClock();
    const random = createSystemRandom();
    const log = createLog(
      {
        level: "warn",
        instance: { id: "new-incarnation", region: "all", version },
        sampling: config.logSampling,
      },
      { clock, random, write: (line) => io.stderr.write(line) },
    );
    const { replaced, started } = await startNewIncarnation(
      config.database,
      {
        ...{ clock, random, log },
        uid: process.getuid?.(),
        readTextFile: io.readTextFile,
        progress: (line) => io.stderr.write(`${line}\n`),
      },
      stop.signal,
    );
    io.stdout.write(
      `incarnation ${started.ordinal} replaces ${replaced.ordinal}; agents compare everything within a minute\n`,
    );
    return exitCodes.ok;
  } finally {
    stop.release();
  }
}
