// krane vault serve: serves a vault on a port, with health endpoints, metrics and traces, to agents and to clients that
// write secrets.
import type { Command } from "commander";
import { type Clock, createSystemClock } from "../../concurrency/clock.ts";
import type { VaultProgramConfig } from "../../config/config.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { createSecretSource } from "../../config/secret-source.ts";
import { VaultService } from "../../gen/vault/v1/service_pb.ts";
import { createHealth, type HealthCheck } from "../../http/health.ts";
import { defaultLifecycle, type LifecycleStack, runLifecycle } from "../../runtime/lifecycle.ts";
import {
  createTracingPart,
  listenOn,
  metricsPortStep,
  processMetricsStep,
  rpcPortStep,
  startedStep,
} from "../../runtime/process-steps.ts";
import type { ServedService } from "../../services/served-services.ts";
import { vaultServiceRoutes } from "../../services/vault-service.ts";
import { type Log, secretWarning } from "../../telemetry/log.ts";
import { type BuildInfo, createMetrics, type Metrics } from "../../telemetry/metrics.ts";
import { openKeyStorage } from "../../vault/create-vault.ts";
import { createEmbeddedVault } from "../../vault/embedded-vault.ts";
import { latest, objectKeyOf } from "../../vault/identifiers.ts";
import type { VaultStorage } from "../../vault/storage/storage.ts";
import type { OpenVault } from "../../vault/vault.ts";
import type { Io } from "../io.ts";
import { createProcessLog } from "../process/process-log.ts";
import { runUntilStopped } from "../process/stop-request.ts";
import { loadVaultConfig } from "./vault-access.ts";

export interface VaultServerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly env: Readonly<Record<string, string | undefined>>;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

/** Runs until the signal aborts or something fails, and resolves after a clean stop. */
function runVaultServer(
  config: VaultProgramConfig,
  deps: VaultServerDeps,
  signal: AbortSignal,
): Promise<void> {
  return runLifecycle(
    (stack, starting) => startVaultServer(config, deps, stack, starting),
    defaultLifecycle,
    deps,
    signal,
  );
}

async function startVaultServer(
  config: VaultProgramConfig,
  deps: VaultServerDeps,
  stack: LifecycleStack,
  signal: AbortSignal,
): Promise<void> {
  const { vault: vaultConfig, observability, instanceId, region } = config;
  if (vaultConfig.kind !== "embedded") throw new TypeError("the rules let a remote vault through");
  const { clock } = deps;
  const metrics = createMetrics(deps.build);
  const service = { name: "krane-vault", instanceId, region };
  const options = observability.tracing && { ...observability.tracing, service };
  const tracing = createTracingPart(options, metrics, deps);
  await stack.start(processMetricsStep(metrics, deps), signal);
  await stack.start(tracing.step, signal);

  const { storage, masterKeys } = await openKeyStorage(vaultConfig, deps, signal);
  const vault = await stack.open(
    "vault",
    async () => createEmbeddedVault({ format: vaultConfig.writeFormat }, { storage, masterKeys, clock }),
    (opened) => ({ stop: () => opened.close() }),
    signal,
  );
  const health = createHealth(new Map([["storage", storageCheck(storage)]]), deps);
  const services = [await loadVaultService(config, vault, metrics, deps, signal)];
  const portDeps = { ...deps, ...listenOn(config) };
  await stack.start(rpcPortStep(config, { health, services, tracing }, portDeps), signal);
  await stack.start(metricsPortStep(observability.metrics.prometheusPort, metrics, portDeps), signal);
  await stack.start(startedStep({ program: "krane vault", health }, deps), signal);
}

async function loadVaultService(
  { token: tokenRef }: VaultProgramConfig,
  vault: OpenVault,
  metrics: Metrics,
  deps: VaultServerDeps,
  signal: AbortSignal,
): Promise<ServedService> {
  if (tokenRef === undefined) throw new TypeError("the rules let a vault without a token through");
  const { clock, log, readTextFile } = deps;
  const token = createSecretSource(tokenRef, {
    readTextFile,
    nowMs: () => clock.nowMs(),
    onFailure: secretWarning(log),
  });
  // Fail at start, not at the first call, if the token cannot be read.
  await token.current(signal);
  return {
    service: VaultService,
    routes: vaultServiceRoutes(vault, token, { clock, log, metrics }),
    knowsCaller: (method) => method !== VaultService.method.liveness,
  };
}

/** Anyone who reaches the port can read the result, so it contains no details. */
function storageCheck(storage: VaultStorage): HealthCheck {
  return async (signal) => {
    try {
      // "No such keyring" is a success, too: the storage responded.
      await storage.read(objectKeyOf("health", latest), signal);
    } catch {
      throw new Error("cannot be read");
    }
  };
}

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
