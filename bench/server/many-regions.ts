// Measures two servers with many regions, of which one has a change: what that costs, and what the idle ones do. Each region
// has two clients, as a leader and a standby, each with one connection and the stream of deployments; an agent has two more
// streams.
import { once, setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { applyDeployment } from "../../test/support/deployment-messages.ts";
import { DesiredFollower } from "../../test/support/desired-follower.ts";
import { eventually } from "../../test/support/eventually.ts";
import { freePort } from "../../test/support/krane-process.ts";
import { cpuSeconds, startServer } from "../server-process.ts";
import { percentile } from "../statistics.ts";
import { residentMb, type ServerPlace, serverFiles, writeServerFiles } from "./server-place.ts";

const regionsVariable = "KRANE_BENCH_REGIONS";
const perRegion = 2;
const deploymentsPerRegion = 10;
const changes = 200;
const restMs = 30_000;
const settleMs = 5_000;
const token = "token-of-the-benchmark";
const goal = { p99Ms: 50, backSeconds: 15, restPercent: 5, kilobytesPerClient: 100 };

export async function measureRegions(
  { admin, database, folder }: ServerPlace,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const count = Number(process.env[regionsVariable] ?? 1_000);
  const regions = Array.from({ length: count }, (_, number) => `r${number}.bench`);
  await writeServerFiles(folder, database, new Map(regions.map((region) => [region, `${token}-${region}`])));
  const versions = new Map<string, bigint>();
  const change = async (region: string, number: number, tag: string) => {
    const image = `registry.example/acme/web:${tag}`;
    const names = { deploymentId: `d_${number}`, k8sName: `web-${number}`, image, replicas: 1 };
    versions.set(region, await admin.setDeployment(region, applyDeployment(names)));
  };
  for (const region of regions) {
    await admin.registerRegion(region);
    for (let number = 0; number < deploymentsPerRegion; number++) await change(region, number, "first");
  }
  const ports = [await freePort(), await freePort()];
  const start = () =>
    Promise.all(ports.map((port) => startServer({ folder, files: serverFiles, port }, signal)));
  let servers = await start();
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal);
  const fleet = createFleet(regions, ports);
  const followers = [...fleet.values()].flat();
  const caughtUp = () =>
    eventually(
      "all have caught up",
      () => {
        const late = regions.filter((region) =>
          fleet.get(region)?.some(({ cursor }) => cursor < (versions.get(region) ?? 0n)),
        );
        if (late.length > 0) throw new Error(`${late.length} regions have not`);
      },
      { deadlineMs: 600_000, signal },
    );
  const emptyMb = await residentMb(servers);
  const following = followers.map((follower) => follower.run(stopped.signal));
  try {
    const connectingMs = performance.now();
    await caughtUp();
    const firstSeconds = (performance.now() - connectingMs) / 1_000;
    await delay(settleMs, undefined, { signal });
    const before = { cpu: await cpuSeconds(servers), ms: performance.now() };
    await delay(restMs, undefined, { signal });
    const restCpu = (await cpuSeconds(servers)) - before.cpu;
    const restPercent = (restCpu / (performance.now() - before.ms)) * 100_000;
    const kilobytes = (((await residentMb(servers)) - emptyMb) * 1_024) / followers.length;

    const idle = await cpuSeconds(servers);
    const latencies = await changeLatencies(fleet, change, signal);
    const perChangeMs = (((await cpuSeconds(servers)) - idle) / changes) * 1_000;

    for (const server of servers) server.kill("SIGKILL");
    await Promise.all(servers.map((server) => once(server, "exit")));
    for (const region of regions) await change(region, 0, "marker");
    const startedMs = performance.now();
    servers = await start();
    await caughtUp();
    const backSeconds = (performance.now() - startedMs) / 1_000;
    const backCpu = await cpuSeconds(servers);
    const p = (percent: number) => percentile(latencies, percent).toFixed(1);
    return [
      `${count} regions, ${followers.length} clients, ${deploymentsPerRegion} deployments per region:`,
      `  all connected, with everything: ${firstSeconds.toFixed(1)} s`,
      `  memory per idle client, both servers: ${kilobytes.toFixed(0)} KB (goal: under ${goal.kilobytesPerClient} KB for an agent)`,
      `  CPU of both servers at rest: ${restPercent.toFixed(2)} % of a core (goal: under ${goal.restPercent} %)`,
      `  change to its region's ${perRegion} clients: p50 ${p(50)} ms, p99 ${p(99)} ms (goal: under ${goal.p99Ms} ms), CPU of both servers per change ${perChangeMs.toFixed(2)} ms`,
      `  all back after both servers were killed: ${backSeconds.toFixed(1)} s (goal: under ${goal.backSeconds} s), ${backCpu.toFixed(1)} s of CPU`,
    ];
  } finally {
    stopped.abort();
    for (const server of servers) server.kill("SIGKILL");
    await Promise.all(following);
  }
}

type Fleet = ReadonlyMap<string, readonly DesiredFollower[]>;
type Change = (region: string, number: number, tag: string) => Promise<void>;

function createFleet(regions: readonly string[], ports: readonly number[]): Fleet {
  const sides = Array.from(
    { length: perRegion },
    (_, side) => `http://127.0.0.1:${ports[side % ports.length]}`,
  );
  const follow = (region: string, address: string) =>
    new DesiredFollower({ url: () => address, region, token: `${token}-${region}` });
  return new Map(regions.map((region) => [region, sides.map((address) => follow(region, address))]));
}

/** Of changes spread over the regions, one after the other. */
async function changeLatencies(
  fleet: Fleet,
  change: Change,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const latencies: number[] = [];
  const regions = [...fleet];
  for (let number = 0; number < changes; number++) {
    signal.throwIfAborted();
    const [region = "", followers = []] = regions[Math.trunc((number / changes) * regions.length)] ?? [];
    const beganMs = performance.now();
    const seen = followers.map((follower) =>
      follower.nextState().then(() => latencies.push(performance.now() - beganMs)),
    );
    await change(region, number % deploymentsPerRegion, `change-${number}`);
    await Promise.all(seen);
  }
  return latencies;
}
