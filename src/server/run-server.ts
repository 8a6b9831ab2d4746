// `krane server` as a whole: a checked configuration and the outside world in, a running
// control plane out. What was started is stopped in reverse order, whatever goes wrong.
import { X509Certificate } from "node:crypto";
import { dirname, resolve } from "node:path";
import { onAbort } from "../concurrency/abort-listener.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import { supervise } from "../concurrency/supervisor.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { routeByPath, serveReads } from "../http/http-handler.ts";
import { startHttpPort } from "../http/http-port.ts";
import { createRpcMetrics } from "../services/rpc-metrics.ts";
import type { Log } from "../telemetry/log.ts";
import { type BuildInfo, createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/no-tracing.ts";
import { createAdminApi } from "./admin-service/admin-api.ts";
import { createAgentAuth } from "./agent-auth.ts";
import { renderCliContext } from "./cli-context.ts";
import { createClusterApi } from "./cluster-api.ts";
import type { ServerConfig } from "./config/server-config.ts";
import { readAdminTokens, readAgentTokens } from "./config/token-lines.ts";
import {
  createControlPlaneServer,
  type RunningControlPlane,
  type ServedApis,
} from "./control-plane-server.ts";
import { cliContextName } from "./embedded/data-folder.ts";
import { ownUrl } from "./own-url.ts";
import { openServerDatabase } from "./server-database.ts";
import { ServerError } from "./server-error.ts";
import { createServerMetrics, type ServerMetrics } from "./server-metrics.ts";
import { startServerTracing } from "./server-tracing.ts";
import { SharedReads } from "./shared-reads.ts";
import type { Store } from "./store.ts";
import { StreamAdmission } from "./stream-admission.ts";
import { openAdminTokens, openAgentTokens, type Tokens, writePrivately } from "./token-files.ts";
import { tokensApart } from "./tokens-apart.ts";

export interface ServerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly uid: number | undefined;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  createToken(): string;
  /** Tells a person what is going on. */
  progress(line: string): void;
  onStarted(server: StartedServer): void;
}

export interface StartedServer {
  /** What it keeps everything in, for a program around it. */
  readonly store: Store;
  readonly port: number;
  readonly url: string;
  readonly metricsUrl: string | undefined;
  readonly regions: readonly string[];
  /** The file with the tokens of the agents, where the server made it. */
  readonly tokensPath: string | undefined;
  readonly hasAdminApi: boolean;
  /** A contexts file for the command line, where the server made the token for it. */
  readonly cliContextPath: string | undefined;
}

const streamsOpenMax = 20_000;
const trimEveryMs = 10 * 60_000;
const regionsEveryMs = 5_000;
const checkTimeoutMs = 400;

type CleanUp = () => Promise<void>;

/** Runs until the signal aborts or something fails; resolves after a clean stop. */
export async function runServer(config: ServerConfig, deps: ServerDeps, signal: AbortSignal): Promise<void> {
  const cleanUps: CleanUp[] = [];
  const failures: Promise<never>[] = [];
  try {
    const database = await openServerDatabase(config.database, deps, signal);
    cleanUps.push(() => database.close());
    failures.push(database.failed);
    const { store } = database;
    const tokens = await openAgentTokens(config, deps);
    const adminTokens = await openAdminTokens(config, deps);
    if (adminTokens !== undefined) await checkApart(tokens, adminTokens, signal);
    const regions = await registerRegions(store, tokens.source, signal);
    cleanUps.push(startLoops(config, store, tokens.source, deps));

    const metrics = createMetrics(deps.build);
    metrics.start(deps);
    cleanUps.push(async () => metrics.stop());
    const tracing = await startServerTracing(config, metrics, deps);
    cleanUps.push(() => tracing.shutdown());
    const own = createServerMetrics();
    const api = createApis(config, store, { agents: tokens, people: adminTokens }, { metrics, own }, deps);
    const server = await startPort(config, api, store, { ...deps, spans: tracing.spans }, signal);
    cleanUps.push(() => server.close());
    failures.push(server.failed);
    const metricsPort = await startMetricsPort(config, { metrics, own }, { api, store }, deps, signal);
    if (metricsPort !== undefined) {
      cleanUps.push(() => metricsPort.stop(new AbortController().signal));
      failures.push(metricsPort.failed);
    }

    deps.log.info("server started", { port: server.port });
    const metricsUrl =
      metricsPort &&
      `${ownUrl({ scheme: "http", host: config.listen.host, port: metricsPort.port })}/metrics`;
    const { port, url } = server;
    const cliContextPath = await writeCliContext(config, adminTokens, { url, regions }, deps, signal);
    const hasAdminApi = adminTokens !== undefined;
    const paths = { tokensPath: tokens.path, cliContextPath };
    deps.onStarted({ store, port, url, metricsUrl, regions, hasAdminApi, ...paths });
    await Promise.race([aborted(signal), ...failures]);
    deps.log.info("server is stopping");
  } catch (error) {
    if (!signal.aborted) {
      await unwind(cleanUps, deps.log).catch(() => undefined);
      throw error;
    }
  }
  await unwind(cleanUps, deps.log);
}

function createApis(
  config: ServerConfig,
  store: Store,
  tokens: { readonly agents: Tokens; readonly people: Tokens | undefined },
  { metrics, own }: { readonly metrics: Metrics; readonly own: ServerMetrics },
  { clock, log }: ServerDeps,
): ServedApis {
  const observer = createRpcMetrics({ clock, metrics });
  const admission = new StreamAdmission(
    { perSecond: config.streamsPerSecond, openMax: streamsOpenMax },
    { clock, onRefused: () => own.countRefusedStream() },
  );
  const auth = createAgentAuth(tokens.agents.source);
  const changes = new SharedReads(store, { clock });
  const people = tokens.people && {
    store,
    tokens: tokens.people.source,
    agentTokens: tokens.agents.source,
    observer,
  };
  return {
    ...createClusterApi({ store, auth, observer, changes, admission }, { clock, log }),
    adminApi: people && createAdminApi(people, { clock, log }),
  };
}

/** Also reads the files: a mistake in them is heard of now. */
async function checkApart(agents: Tokens, people: Tokens, signal: AbortSignal): Promise<void> {
  const lists = [await people.source.current(signal), await agents.source.current(signal)] as const;
  const [problem] = tokensApart(...lists).problems;
  if (problem !== undefined) throw problem;
}

/** Only beside a token that the server made up: of others it knows no file. */
async function writeCliContext(
  { tls }: ServerConfig,
  tokens: Tokens | undefined,
  { url: server, regions }: Pick<StartedServer, "url" | "regions">,
  deps: ServerDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (tokens?.path === undefined) return undefined;
  const known = readAdminTokens(await tokens.source.current(signal));
  const best = known.find(({ role }) => role === "read-write") ?? known[0];
  if (best === undefined) return undefined;
  const [region = ""] = regions;
  const caFile = tls && (await isSelfSigned(tls.certFile, deps, signal)) ? resolve(tls.certFile) : undefined;
  const path = resolve(dirname(tokens.path), cliContextName);
  await writePrivately(path, renderCliContext({ name: "server", server, region, token: best.token, caFile }));
  return path;
}

/** Such a certificate is its own authority; who issued any other one is for its owner to say. */
async function isSelfSigned(path: string, deps: ServerDeps, signal: AbortSignal): Promise<boolean> {
  const certificate = new X509Certificate(await deps.readTextFile(path, signal));
  return certificate.checkIssued(certificate);
}

function startPort(
  { listen, tls }: ServerConfig,
  api: ServedApis,
  store: Store,
  deps: ServerDeps & Traced,
  signal: AbortSignal,
): Promise<RunningControlPlane> {
  // What the database says of itself is for the log; this is told to anybody who asks.
  const isReadable = () =>
    store.regions().then(
      () => undefined,
      () => {
        throw new Error("cannot be read");
      },
    );
  const checks = new Map([["database", isReadable]]);
  const options = { ...listen, ...(tls && { tls }), setting: "server.listen", checks };
  return createControlPlaneServer(api, options, deps).start(signal);
}

async function startMetricsPort(
  { prometheusPort: port, listen }: ServerConfig,
  { metrics, own }: { readonly metrics: Metrics; readonly own: ServerMetrics },
  { api, store }: { readonly api: ServedApis; readonly store: Store },
  deps: ServerDeps,
  signal: AbortSignal,
) {
  if (port === 0) return undefined;
  const page = serveReads(async () => {
    const databaseUp = await isUp(store, deps.clock);
    const body =
      (await metrics.render()) + (await own.render({ streamsOpen: api.streams.openCount, databaseUp }));
    return { status: 200, contentType: metrics.contentType, body };
  });
  const options = { port, host: listen.host, setting: "observability.metrics.prometheus_port" };
  return startHttpPort(routeByPath(new Map([["/metrics", page]])), options, deps, signal);
}

/** Never waits for a database that hangs: a scrape has to come back with what is known. */
function isUp(store: Store, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(checkTimeoutMs, () => resolve(false));
    store.regions().then(
      () => {
        timer.cancel();
        resolve(true);
      },
      () => {
        timer.cancel();
        resolve(false);
      },
    );
  });
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

/** Keeps what is kept within its limits, and takes regions in that the tokens name later. */
function startLoops(config: ServerConfig, store: Store, source: SecretSource, deps: ServerDeps): CleanUp {
  const stopped = new AbortController();
  const { clock, log } = deps;
  const onFailure = (name: string, error: unknown) =>
    log.warn("a task failed and is tried again", { component: name, error });
  const every = (name: string, delayMs: number, work: (signal: AbortSignal) => Promise<unknown>) =>
    supervise(
      name,
      async (loopSignal) => {
        for (;;) {
          await work(loopSignal);
          await sleep(clock, delayMs, loopSignal);
        }
      },
      { ...deps, onFailure },
      stopped.signal,
    );
  const loops = [
    every("history", trimEveryMs, () => store.trimHistory(config.history, clock.wallMs())),
    every("regions", regionsEveryMs, (loopSignal) => registerRegions(store, source, loopSignal)),
  ];
  return async () => {
    stopped.abort();
    await Promise.all(loops);
  };
}

/** Runs every clean-up, also after one has failed. */
async function unwind(cleanUps: readonly CleanUp[], log: Log): Promise<void> {
  const errors: unknown[] = [];
  for (const cleanUp of cleanUps.toReversed()) {
    await cleanUp().catch((error: unknown) => {
      log.error("a part of the server did not stop cleanly", { error });
      errors.push(error);
    });
  }
  if (errors.length > 0) {
    throw new ServerError("stop_failed", `stopping: ${errors.map(String).join("; ")}`, { cause: errors[0] });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else onAbort(signal, resolve);
  });
}
