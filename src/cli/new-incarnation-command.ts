// krane server new-incarnation: starts a new incarnation of the control plane, after a restore that it cannot notice.
import type { Command } from "commander";
import { createSystemClock } from "../concurrency/clock.ts";
import { createSystemRandom } from "../concurrency/random.ts";
import type { ProcessEnv } from "../config/expand.ts";
import { createLog } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { listenForStop } from "./process/stop-request.ts";
import { loadServerConfig } from "./server-options.ts";

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
