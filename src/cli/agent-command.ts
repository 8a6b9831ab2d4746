// krane agent: runs until it is told to stop.
import type { Command } from "commander";
import { run } from "../agent/run.ts";
import { createSystemClock } from "../concurrency/clock.ts";
import { createSystemRandom } from "../concurrency/random.ts";
import { createCommandRunner } from "../kube/command-runner.ts";
import type { Log } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import { renderAnnouncement } from "./announcement.ts";
import { loadConfig } from "./config-source.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Environment, Io } from "./io.ts";
import { createProcessLog } from "./process/process-log.ts";
import { listenForStop } from "./process/stop-request.ts";

export async function runAgent(
  command: Command,
  env: Environment,
  io: Io,
  build: BuildInfo,
): Promise<number> {
  let log: Log | undefined;
  const stop = listenForStop(io, (signal) => log?.info("stop signal received", { signal }));
  try {
    const loaded = await loadConfig(command, env, io, stop.signal);
    if (!loaded) return exitCodes.config;
    const { instanceId: id, region, observability } = loaded.config;
    const instance = { id, region: region.label, version: build.version };
    log = createProcessLog({ instance, logging: observability.logging }, io.stdout);
    const announce = io.stdout.isTerminal || command.opts<{ announce?: true }>().announce;
    const onStarted = () => {
      if (announce) io.stderr.write(renderAnnouncement(loaded, build, io.program));
    };
    const deps = {
      clock: createSystemClock(),
      random: createSystemRandom(),
      log,
      build,
      env,
      readTextFile: io.readTextFile,
      runCommand: createCommandRunner(env),
      onStarted,
    };
    await run(loaded.config, deps, stop.signal);
    log.info("krane stopped");
    return exitCodes.ok;
  } catch (error) {
    if (error === stop.signal.reason) return exitCodes.ok;
    log?.error("krane failed", { error });
    throw error;
  } finally {
    stop.release();
  }
}
