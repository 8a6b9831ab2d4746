// krane agent: runs until it is told to stop.
import type { Command } from "commander";
import { run } from "../agent/run.ts";
import { createSystemClock } from "../concurrency/clock.ts";
import { createSystemRandom } from "../concurrency/random.ts";
import type { Config } from "../config/config.ts";
import { createCommandRunner } from "../kube/command-runner.ts";
import { createLog, type Log } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import { renderAnnouncement } from "./announcement.ts";
import { loadConfig } from "./config-source.ts";
import { exitCodeOfSignal, exitCodes } from "./exit-codes.ts";
import type { Environment, Io, Output, StopSignal } from "./io.ts";

const logBacklogBytesMax = 1024 * 1024;

export async function runAgent(
  command: Command,
  env: Environment,
  io: Io,
  build: BuildInfo,
): Promise<number> {
  const stop = new AbortController();
  let log: Log | undefined;
  const onSignal = (signal: StopSignal) => {
    // Whoever asks twice does not want to wait for the clean-up.
    if (stop.signal.aborted) io.exit(exitCodeOfSignal(signal));
    log?.info("stop signal received", { signal });
    stop.abort();
  };
  const release = io.onStopSignal(onSignal);
  try {
    const loaded = await loadConfig(command, env, io, stop.signal);
    if (!loaded) return exitCodes.config;
    log = createAgentLog(loaded.config, build, io.stdout);
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
    release();
  }
}

function createAgentLog(config: Config, build: BuildInfo, stdout: Output): Log {
  const { level, sampleRate, slowThresholdMs } = config.observability.logging;
  return createLog(
    {
      level,
      instance: { id: config.instanceId, region: config.region.label, version: build.version },
      sampling: { rate: sampleRate, slowThresholdMs },
    },
    {
      clock: createSystemClock(),
      random: createSystemRandom(),
      // A reader that stalls must cost lines, which are counted, and not memory.
      write(line) {
        if (stdout.backlogBytes > logBacklogBytesMax) throw new Error("standard output is not being read");
        stdout.write(line);
      },
    },
  );
}
