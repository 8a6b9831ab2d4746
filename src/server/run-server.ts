// Runs `krane server`: takes a checked configuration and its dependencies, and runs a
// control plane until it is stopped.
import { type Clock, sleep } from "../concurrency/clock.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { SecretSource } from "../config/secret-source.ts";
import type { PageFiles } from "../dashboard/page-files.ts";
import {
  type LifecycleOptions,
  type LifecycleStack,
  type LifecycleStep,
  runLifecycle,
} from "../runtime/lifecycle.ts";
import {
  createTracingPart,
  metricsPortStep,
  processMetricsStep,
  startedStep,
  startLoop,
  type TracingPart,
} from "../runtime/process-steps.ts";
import { RuntimeError } from "../runtime/runtime-error.ts";
import { createRpcMetrics } from "../services/rpc-metrics.ts";
import type { Log } from "../telemetry/log.ts";
import { type BuildInfo, createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/spans.ts";
import { createAdminApi } from "./admin-service/admin-api.ts";
import { createAgentAuth } from "./agent-auth.ts";
import { advanceReleases, releaseStepsEveryMs } from "./apps/release-steps.ts";
import { writeCliContext } from "./cli-context.ts";
import { createClusterApi } from "./cluster-api.ts";
import type { ServerConfig } from "./config/server-config.ts";
import { readAgentTokens } from "./config/token-lines.ts";
import {
  createControlPlaneServer,
  type RunningControlPlane,
  type ServedApis,
} from "./control-plane-server.ts";
import { scanDigests } from "./digest-scan.ts";
import { LogBroker } from "./logs/log-broker.ts";
import { createSignIn } from "./oidc/create-sign-in.ts";
import { ownUrl } from "./own-url.ts";
import { openServerDatabase } from "./server-database.ts";
import { createServerMetrics, metricsPage, type ServerMetrics } from "./server-metrics.ts";
import { SharedReads } from "./shared-reads.ts";
import type { Store } from "./store.ts";
import { StreamAdmission } from "./stream-admission.ts";
import { openAdminTokens, openAgentTokens, type Tokens } from "./token-files.ts";
import { tokensApart } from "./tokens-apart.ts";

export interface ServerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly uid: number | undefined;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  createToken(): string;
  /** Absent in a program that was not bundled. */
  readonly dashboard?: PageFiles | undefined;
  /** Shows progress to a person. */
  progress(line: string): void;
  onStarted(server: StartedServer): void;
}

export interface StartedServer {
  /** The store, for a program that embeds the server. */
  readonly store: Store;
  readonly port: number;
  readonly url: string;
  readonly metricsUrl: string | undefined;
  readonly regions: readonly string[];
  /** The file with the agents' tokens, if the server generated it. */
  readonly tokensPath: string | undefined;
  readonly hasAdminApi: boolean;
  readonly dashboardUrl: string | undefined;
  /** A contexts file for the command line, if the server generated its token. */
  readonly cliContextPath: string | undefined;
}

const streamsOpenMax = 20_000;
const trimEveryMs = 10 * 60_000;
const digestsEveryMs = 60 * 60_000;
const regionsEveryMs = 5_000;

// PostgreSQL alone may take 20 s to shut down, after calls in progress have ended.
const lifecycle: LifecycleOptions = { stopTimeoutMs: 60_000, forceTimeoutMs: 25_000 };

/** Runs until the signal aborts or something fails; resolves after a clean stop. */
export async function runServer(config: ServerConfig, deps: ServerDeps, signal: AbortSignal): Promise<void> {
  try {
    await runLifecycle(
      (stack, starting) => startServer(config, deps, stack, starting),
      lifecycle,
      deps,
      signal,
    );
  } catch (error) {
    logStopFailures(error, deps.log);
    throw error;
  }
}

async function startServer(
  config: ServerConfig,
  deps: ServerDeps,
  stack: LifecycleStack,
  signal: AbortSignal,
): Promise<void> {
  const { store } = await stack.open(
    "database",
    (starting) =>
      openServerDatabase(config.database, deps, starting).catch((error: unknown) => {
        // A database that is told to stop while it starts fails with its own errors.
        starting.throwIfAborted();
        throw error;
      }),
    (database) => ({ stop: () => database.close(), failed: database.failed }),
    signal,
  );
  const agents = await openAgentTokens(config, deps);
  const people = await openAdminTokens(config, deps);
  if (people !== undefined) await checkApart(agents, people, signal);
  const regions = await registerRegions(store, agents.source, signal);
  const own = createServerMetrics();
  await stack.start(loopsStep(config, store, agents.source, own, deps), signal);

  const metrics = createMetrics(deps.build);
  const tracing = createServerTracing(config, metrics, deps);
  await stack.start(processMetricsStep(metrics, deps), signal);
  await stack.start(tracing.step, signal);
  const apis = createApis(config, store, { agents, people }, { metrics, own }, deps);
  const { port, url, dashboardUrl } = await stack.open(
    "port",
    (starting) => startPort(config, apis, store, { ...deps, spans: tracing.spans }, starting),
    (server) => ({ stop: (hurry) => server.close(hurry), failed: server.failed }),
    signal,
  );
  const { prometheusPort, listen } = config;
  const page = metricsPage({ metrics, own }, { streams: apis.streams, store }, deps.clock);
  const listenOn = { host: listen.host, setting: "server.listen" };
  await stack.start(metricsPortStep(prometheusPort, page, { ...deps, listenOn }), signal);
  await stack.start(startedStep({ program: "server", fields: { port } }, deps), signal);

  const metricsUrl =
    prometheusPort === 0
      ? undefined
      : `${ownUrl({ scheme: "http", host: listen.host, port: prometheusPort })}/metrics`;
  const cliContextPath = await writeCliContext(config, people, { url, regions }, deps, signal);
  const paths = { tokensPath: agents.path, cliContextPath, dashboardUrl };
  deps.onStarted({ store, port, url, metricsUrl, regions, hasAdminApi: people !== undefined, ...paths });
}

function logStopFailures(error: unknown, log: Log): void {
  const causes: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
  for (const cause of causes) {
    if (cause instanceof RuntimeError && cause.code !== "task_failed")
      log.error("a part of the server did not stop cleanly", { error: cause });
  }
}

function createServerTracing({ tracing }: ServerConfig, metrics: Metrics, deps: ServerDeps): TracingPart {
  const options = tracing && {
    sampleRate: tracing.sampleRate,
    service: {
      name: "krane-server",
      // Several servers may share a database, and a machine.
      instanceId: `server-${Math.trunc(uniform(deps.random, 0, 2 ** 48)).toString(36)}`,
      region: "all",
    },
  };
  return createTracingPart(options, metrics, { ...deps, env: tracing?.env ?? {} });
}

function createApis(
  config: ServerConfig,
  store: Store,
  tokens: { readonly agents: Tokens; readonly people: Tokens | undefined },
  { metrics, own }: { readonly metrics: Metrics; readonly own: ServerMetrics },
  deps: ServerDeps,
): ServedApis {
  const { clock, log, createToken } = deps;
  const observer = createRpcMetrics({ clock, metrics });
  const admission = new StreamAdmission(
    { perSecond: config.streamsPerSecond, openMax: streamsOpenMax },
    { clock, onRefused: () => own.countRefusedStream() },
  );
  const auth = createAgentAuth(tokens.agents.source);
  const changes = new SharedReads(store, { clock });
  const signIn =
    config.oidc &&
    createSignIn(config.oidc, { ...deps, sessions: store.sessions, servesTls: config.tls !== undefined });
  const logs = new LogBroker({ clock, log, channel: store.channel });
  const people = tokens.people && {
    store,
    logs,
    tokens: tokens.people.source,
    agentTokens: tokens.agents.source,
    observer,
    sessions: { createToken, servesTls: config.tls !== undefined, people: signIn?.people },
  };
  return {
    ...createClusterApi({ store, auth, observer, changes, admission, logs }, { clock, log }),
    adminApi: people && createAdminApi(people, { clock, log }),
    signIn: signIn?.signIn,
  };
}

/** Also reads the files, so that mistakes in them show at start. */
async function checkApart(agents: Tokens, people: Tokens, signal: AbortSignal): Promise<void> {
  const lists = [await people.source.current(signal), await agents.source.current(signal)] as const;
  const [problem] = tokensApart(...lists).problems;
  if (problem !== undefined) throw problem;
}

function startPort(
  { listen, tls }: ServerConfig,
  apis: ServedApis,
  store: Store,
  deps: ServerDeps & Traced,
  signal: AbortSignal,
): Promise<RunningControlPlane> {
  // The database's own error goes to the log; this one is shown to any caller.
  const isReadable = () =>
    store.regions().then(
      () => undefined,
      () => {
        throw new Error("cannot be read");
      },
    );
  const checks = new Map([["database", isReadable]]);
  const options = {
    ...listen,
    ...(tls && { tls }),
    setting: "server.listen",
    checks,
    dashboard: deps.dashboard,
  };
  return createControlPlaneServer(apis, options, deps).start(signal);
}

async function registerRegions(
  store: Store,
  source: SecretSource,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const wanted = new Set(readAgentTokens(await source.current(signal)).map(({ region }) => region));
  const known = new Set(await store.regions());
  for (const region of wanted) if (!known.has(region)) await store.registerRegion(region);
  return [...wanted];
}

/**
 * Keeps the history within its limits, verifies digests, registers regions that are added to the tokens later, and
 * advances the releases of apps.
 */
function loopsStep(
  config: ServerConfig,
  store: Store,
  source: SecretSource,
  metrics: ServerMetrics,
  deps: ServerDeps,
): LifecycleStep {
  const { clock, random, log } = deps;
  const onWrong = (count: number) => metrics.countWrongDigests(count);
  const onFailure = (name: string, error: unknown) =>
    log.warn("a task failed and will be retried", { component: name, error });
  const every = (name: string, delayMs: number, work: (signal: AbortSignal) => Promise<unknown>) =>
    startLoop(
      name,
      async (signal) => {
        for (;;) {
          await work(signal);
          await sleep(clock, delayMs, signal);
        }
      },
      { clock, random, onFailure },
    );
  return {
    name: "loops",
    async start() {
      const loops = [
        every("history", trimEveryMs, () => store.trimHistory(config.history, clock.wallMs())),
        every("digests", digestsEveryMs, (signal) => scanDigests({ ...deps, store, onWrong }, signal)),
        every("regions", regionsEveryMs, (signal) => registerRegions(store, source, signal)),
        every("releases", releaseStepsEveryMs, (signal) => advanceReleases(store, clock.wallMs(), signal)),
      ];
      return {
        async stop(hurry) {
          await Promise.all(loops.map((loop) => loop.stop(hurry)));
        },
      };
    },
  };
}
