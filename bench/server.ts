// Measures two processes of `krane server` on one PostgreSQL, with 2,000 deployments and 200
// clients in this process that follow the deployments of one region: the time from a change
// until each client has it, and the time until a fleet has reconnected after both servers
// were killed. The raw limit of the first is a notification from the same database to a
// client that only waits for it.
import { once, setMaxListeners } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import { createSystemClock } from "../src/concurrency/clock.ts";
import { createSystemRandom } from "../src/concurrency/random.ts";
import { findPostgresBinaries } from "../src/server/embedded/binaries.ts";
import { startEmbeddedPostgres } from "../src/server/embedded/embedded-postgres.ts";
import { connectAlone } from "../src/server/postgres/database.ts";
import { startPostgresStore } from "../src/server/postgres/postgres-store.ts";
import { applyDeployment } from "../test/support/deployment-messages.ts";
import { DesiredFollower } from "../test/support/desired-follower.ts";
import { eventually } from "../test/support/eventually.ts";
import { freePort } from "../test/support/krane-process.ts";
import { createQuietLog } from "../test/support/quiet-log.ts";
import { createStoreAdmin, type StoreAdmin } from "../test/support/store-admin.ts";
import type { Benchmark } from "./benchmark.ts";
import { measureRegions } from "./server/many-regions.ts";
import { type ServerPlace, serverFiles, writeServerFiles } from "./server/server-place.ts";
import { cpuSeconds, startServer } from "./server-process.ts";
import { percentile } from "./statistics.ts";

const clients = 200;
const deployments = 2_000;
const changes = 100;
const region = "bench.local";
const token = "token-of-the-benchmark";

export const serverBenchmark: Benchmark = {
  name: "server",
  measures: `two servers on one PostgreSQL, ${clients} clients, ${deployments} deployments`,
  async run(signal) {
    const folder = await mkdtemp(join(tmpdir(), "krane-bench-server-"));
    const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
    const binaries = await findPostgresBinaries(undefined);
    // Beside the folder and not in it: a database started by root runs under another account.
    const dataDir = await mkdtemp(join(tmpdir(), "krane-bench-data-"));
    const options = { dataDir, binaries, uid: process.getuid?.() };
    const postgres = await startEmbeddedPostgres(options, deps, signal);
    try {
      const { store, close } = await startPostgresStore(postgres.config, deps);
      try {
        await store.registerRegion(region);
        const admin = createStoreAdmin(store, { clock: deps.clock, by: "bench" });
        const place = { admin, database: postgres.config, folder };
        return [...(await measure(place, signal)), ...(await measureRegions(place, signal))];
      } finally {
        await close();
      }
    } finally {
      await postgres.stop();
      await Promise.all([folder, dataDir].map((each) => rm(each, { recursive: true })));
    }
  },
};

async function measure(
  { admin, database, folder }: ServerPlace,
  signal: AbortSignal,
): Promise<readonly string[]> {
  await writeServerFiles(folder, database, new Map([[region, token]]));
  const ports = [await freePort(), await freePort()];
  const start = () =>
    Promise.all(ports.map((port) => startServer({ folder, files: serverFiles, port }, signal)));
  const began = performance.now();
  for (let number = 0; number < deployments; number++) await change(admin, number, "first");
  const writeSeconds = (performance.now() - began) / 1_000;

  let servers = await start();
  const stopped = new AbortController();
  // Each client listens to it.
  setMaxListeners(0, stopped.signal);
  const fleet = Array.from({ length: clients }, (_, index) => {
    const address = `http://127.0.0.1:${ports[index % ports.length]}`;
    return new DesiredFollower({ url: () => address, region, token });
  });
  const following = fleet.map((follower) => follower.run(stopped.signal));
  try {
    const firstSeconds = await caughtUp(fleet, BigInt(deployments), signal);
    const idle = await cpuSeconds(servers);
    const latencies = await changeLatencies(admin, fleet, signal);
    const busy = await cpuSeconds(servers);
    const raw = await notificationLatencies(database);

    for (const server of servers) server.kill("SIGKILL");
    await Promise.all(servers.map((server) => once(server, "exit")));
    const marker = await change(admin, 0, "marker");
    const hintsBefore = total(fleet);
    const startedMs = performance.now();
    servers = await start();
    await caughtUp(fleet, marker, signal);
    const backSeconds = (performance.now() - startedMs) / 1_000;
    const restart = await cpuSeconds(servers);
    const p = (values: readonly number[], percent: number) => percentile(values, percent).toFixed(1);
    return [
      `write ${deployments} deployments, one after the other: ${(deployments / writeSeconds).toFixed(0)} per second`,
      `change to client: p50 ${p(latencies, 50)} ms, p99 ${p(latencies, 99)} ms; raw notification p50 ${p(raw, 50)} ms, p99 ${p(raw, 99)} ms`,
      `CPU of both servers per change to ${clients} clients: ${(((busy - idle) / changes) * 1_000).toFixed(1)} ms`,
      `all ${clients} clients with all ${deployments} deployments from nothing: ${firstSeconds.toFixed(1)} s`,
      `all ${clients} clients back after both servers were killed: ${backSeconds.toFixed(1)} s from the new start (goal: under 30), ${restart.toFixed(1)} s of CPU, ${total(fleet) - hintsBefore} hints to come later`,
    ];
  } finally {
    stopped.abort();
    for (const server of servers) server.kill("SIGKILL");
    await Promise.all(following);
  }
}

const total = (fleet: readonly DesiredFollower[]) => fleet.reduce((sum, { hints }) => sum + hints, 0);

function change(admin: StoreAdmin, number: number, tag: string): Promise<bigint> {
  const image = `registry.example/acme/web:${tag}`;
  return admin.setDeployment(
    region,
    applyDeployment({ deploymentId: `d_${number}`, k8sName: `web-${number}`, image, replicas: 1 }),
  );
}

/** Seconds until every client has seen the version. */
async function caughtUp(
  fleet: readonly DesiredFollower[],
  version: bigint,
  signal: AbortSignal,
): Promise<number> {
  const began = performance.now();
  await eventually(
    "all have caught up",
    () => {
      const late = fleet.filter(({ cursor }) => cursor < version).length;
      if (late > 0) throw new Error(`${late} have not`);
    },
    { deadlineMs: 120_000, signal },
  );
  return (performance.now() - began) / 1_000;
}

async function changeLatencies(admin: StoreAdmin, fleet: readonly DesiredFollower[], signal: AbortSignal) {
  const latencies: number[] = [];
  for (let number = 0; number < changes; number++) {
    signal.throwIfAborted();
    const began = performance.now();
    const seen = fleet.map((follower) =>
      follower.nextState().then(() => latencies.push(performance.now() - began)),
    );
    await change(admin, number, `change-${number}`);
    await Promise.all(seen);
  }
  return latencies;
}

async function notificationLatencies(database: ClientConfig): Promise<number[]> {
  const [listener, sender] = [await connectAlone(database), await connectAlone(database)];
  const latencies: number[] = [];
  await listener.query("LISTEN bench");
  for (let number = 0; number < changes; number++) {
    const began = performance.now();
    const heard = once(listener, "notification");
    await sender.query("NOTIFY bench");
    await heard;
    latencies.push(performance.now() - began);
  }
  await Promise.all([listener.end(), sender.end()]);
  return latencies;
}
