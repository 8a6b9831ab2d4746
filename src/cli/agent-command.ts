// krane agent: runs the agent until it gets a stop signal.
import type { Command } from "commander";
import { run } from "../agent/run.ts";
import { createSystemClock } from "../concurrency/clock.ts";
import { createSystemRandom } from "../concurrency/random.ts";
import type { ProcessEnv } from "../config/expand.ts";
import { createCommandRunner } from "../kube/command-runner.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import { renderAnnouncement } from "./announcement.ts";
import { loadConfig } from "./config-source.ts";
import type { Io } from "./io.ts";
import { createProcessLog } from "./process/process-log.ts";
import { runUntilStopped } from "./process/stop-request.ts";

export function runAgent(command: Command, env: ProcessEnv, io: Io, build: BuildInfo): Promise<number> {
  return runUntilStopped(io, async (signal) => {
    const loaded = await loadConfig(command, env, io, signal);
    if (!loaded) return undefined;
    const { instanceId: id, region, observability } = loaded.config;
    const instance = { id, region: region.label, version: build.version };
    const log = createProcessLog({ instance, logging: observability.logging }, io.stdout, env);
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
    return { log, run: (stopping) => run(loaded.config, deps, stopping) };
  });
}
