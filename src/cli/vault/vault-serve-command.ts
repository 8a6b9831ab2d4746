// krane vault serve: serves a vault to agents and to clients that write secrets.
import type { Command } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import type { BuildInfo } from "../../telemetry/metrics.ts";
import type { Io } from "../io.ts";
import { createProcessLog } from "../process/process-log.ts";
import { runUntilStopped } from "../process/stop-request.ts";
import { loadVaultConfig } from "./vault-access.ts";
import { runVaultServer } from "./vault-server.ts";

export function runServe(command: Command, env: ProcessEnv, io: Io, build: BuildInfo): Promise<number> {
  return runUntilStopped(io, async (signal) => {
    const config = await loadVaultConfig("serve", command, env, io, signal);
    if (config === undefined) return undefined;
    const instance = { id: config.instanceId, region: config.region, version: build.version };
    const log = createProcessLog({ instance, logging: config.observability.logging }, io.stdout, env);
    const deps = { clock: createSystemClock(), log, build, env, readTextFile: io.readTextFile };
    return { log, run: (stopping) => runVaultServer(config, deps, stopping) };
  });
}
