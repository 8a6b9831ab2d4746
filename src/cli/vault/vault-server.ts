// A vault on a port, with health endpoints, metrics and traces, started and stopped in
// order as the agent is.

import { type ServedService, serviceRoutes } from "../../agent/rpc-services.ts";
import type { Clock } from "../../concurrency/clock.ts";
import type { VaultProgramConfig } from "../../config/config.ts";
import { createSecretSource } from "../../config/secret-source.ts";
import { VaultService } from "../../gen/vault/v1/service_pb.ts";
import { createHealth, type Health, type HealthCheck } from "../../http/health.ts";
import { type HttpHandler, routeByPath, serveReads } from "../../http/http-handler.ts";
import { startHttpPort } from "../../http/http-port.ts";
import { defaultLifecycle, runSteps, type Step } from "../../runtime/lifecycle.ts";
import { vaultServiceRoutes } from "../../services/vault-service.ts";
import type { Log } from "../../telemetry/log.ts";
import { type BuildInfo, createMetrics, type Metrics } from "../../telemetry/metrics.ts";
import type { Traced } from "../../telemetry/no-tracing.ts";
import { secretWarning } from "../../telemetry/secret-warning.ts";
import { startTracing } from "../../telemetry/tracing.ts";
import { openKeyStorage } from "../../vault/create-vault.ts";
import { createEmbeddedVault } from "../../vault/embedded-vault.ts";
import { latest, objectKeyOf } from "../../vault/identifiers.ts";
import type { VaultStorage } from "../../vault/storage/storage.ts";
import type { OpenVault } from "../../vault/vault.ts";

export interface VaultServerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly env: Readonly<Record<string, string | undefined>>;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

/** Runs until the signal aborts or something fails, and resolves after a clean stop. */
export async function runVaultServer(
  config: VaultProgramConfig,
  deps: VaultServerDeps,
  signal: AbortSignal,
): Promise<void> {
  const { vault: vaultConfig } = config;
  if (vaultConfig.kind !== "embedded") throw new TypeError("the rules let a remote vault through");
  const metrics = createMetrics(deps.build);
  const { storage, masterKeys } = await openKeyStorage(vaultConfig, deps, signal);
  const vault = createEmbeddedVault(
    { format: vaultConfig.writeFormat },
    { storage, masterKeys, clock: deps.clock },
  );
  const health = createHealth(new Map([["storage", storageCheck(storage)]]), deps);
  const service = await loadVaultService(config, vault, metrics, deps, signal);
  const observers = createObservers(config, metrics, deps);
  const rpc = () =>
    new Map([...serviceRoutes([service], health, { ...deps, spans: observers.spans }), ...health.routes()]);
  const page = serveReads(async () => ({
    status: 200,
    contentType: metrics.contentType,
    body: await metrics.render(),
  }));
  const { tls, rpcPort, observability } = config;
  const prometheus = {
    port: observability.metrics.prometheusPort,
    setting: "observability.metrics.prometheus_port",
  };
  const steps: Step[] = [
    observers.step,
    { name: "vault", start: async () => ({ stop: () => vault.close() }) },
    portStep("RPC port", rpc, { port: rpcPort, setting: "rpc_port", tls }, deps),
    portStep("metrics port", () => new Map([["/metrics", page]]), prometheus, deps),
    startedStep(health, deps),
  ];
  await runSteps(steps, defaultLifecycle, deps, signal);
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
  // A token that cannot be read is better found now than by the first caller.
  await token.current(signal);
  return {
    service: VaultService,
    routes: vaultServiceRoutes(vault, token, { clock, log, metrics }),
    knowsCaller: (method) => method !== VaultService.method.liveness,
  };
}

/** Anyone who reaches the port can read the reason, so it says none. */
function storageCheck(storage: VaultStorage): HealthCheck {
  return async (signal) => {
    try {
      // That there is no such keyring is an answer.
      await storage.read(objectKeyOf("health", latest), signal);
    } catch {
      throw new Error("cannot be read");
    }
  };
}

/** The spans are there once the step has started. */
function createObservers(config: VaultProgramConfig, metrics: Metrics, deps: VaultServerDeps) {
  let spans: Traced["spans"];
  const step: Step = {
    name: "metrics and traces",
    async start() {
      metrics.start(deps);
      const { instanceId, region, observability } = config;
      const service = {
        namespace: "unkey",
        name: "krane-vault",
        version: deps.build.version,
        instanceId,
        region,
      };
      const tracing =
        observability.tracing &&
        (await startTracing({ sampleRate: observability.tracing.sampleRate, service, metrics }, deps));
      spans = tracing?.spans;
      return {
        async stop() {
          metrics.stop();
          await tracing?.shutdown();
        },
      };
    },
  };
  return {
    step,
    get spans() {
      return spans;
    },
  };
}

/** Port 0 is no port. The routes are asked for when it opens. */
function portStep(
  name: string,
  routes: () => ReadonlyMap<string, HttpHandler>,
  options: Parameters<typeof startHttpPort>[1],
  deps: VaultServerDeps,
): Step {
  return {
    name,
    async start(signal) {
      if (options.port === 0) return undefined;
      const started = await startHttpPort(routeByPath(routes()), options, deps, signal);
      deps.log.info("listening", { setting: options.setting, port: started.port });
      return started;
    },
  };
}

function startedStep(health: Health, { log }: VaultServerDeps): Step {
  return {
    name: "health",
    async start() {
      health.markStarted();
      log.info("krane vault started");
      return {
        async stop() {
          log.info("krane vault is stopping");
          health.markShuttingDown();
        },
      };
    },
  };
}
