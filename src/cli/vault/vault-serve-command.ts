// krane vault serve: a vault for agents and for whoever writes secrets.
import type { Command } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import type { Log } from "../../telemetry/log.ts";
import type { BuildInfo } from "../../telemetry/metrics.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Environment, Io } from "../io.ts";
import { createProcessLog } from "../process/process-log.ts";
import { listenForStop } from "../process/stop-request.ts";
import { loadVaultConfig } from "./vault-access.ts";
import { runVaultServer } from "./vault-server.ts";

export async function runServe(
  command: Command,
  env: Environment,
  io: Io,
  build: BuildInfo,
): Promise<number> {
  let log: Log | undefined;
  const stop = listenForStop(io, (signal) => log?.info("stop signal received", { signal }));
  try {
    const config = await loadVaultConfig("serve", command, env, io, stop.signal);
    if (config === undefined) return exitCodes.config;
    const instance = { id: config.instanceId, region: config.region, version: build.version };
    log = createProcessLog({ instance, logging: config.observability.logging }, io.stdout);
    const deps = { clock: createSystemClock(), log, build, env, readTextFile: io.readTextFile };
    await runVaultServer(config, deps, stop.signal);
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
