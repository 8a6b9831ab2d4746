// Measures the dashboard in Chromium on a region in which everything changes, while many browsers follow the fleet of the same
// server: frames, memory, and the time from a change until it is seen.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSystemClock, sleep } from "../src/concurrency/clock.ts";
import { createSystemRandom } from "../src/concurrency/random.ts";
import { findPostgresBinaries } from "../src/server/embedded/binaries.ts";
import { startEmbeddedPostgres } from "../src/server/embedded/embedded-postgres.ts";
import { startPostgresStore } from "../src/server/postgres/postgres-store.ts";
import { findDebianProgram } from "../test/support/debian-program.ts";
import { freePort } from "../test/support/krane-process.ts";
import { createQuietLog } from "../test/support/quiet-log.ts";
import type { Benchmark } from "./benchmark.ts";
import { type PageFigures, WatchedPage } from "./dashboard/browser.ts";
import { BusyFleet, imageOf } from "./dashboard/fleet.ts";
import { type FollowedStreams, followFleets } from "./dashboard/streams.ts";
import { cpuSeconds, databaseUrl, residentBytes, startServer } from "./server-process.ts";
import { percentile } from "./statistics.ts";

const objects = 5_000;
const changesPerSecond = 100;
const browsers = 200;
const region = "bench.local";
/** Of several people: a person has at most 100 sessions. */
const tokens = ["ann", "bob", "cy", "dee"].map((name) => `token-of-${name}-for-the-benchmark`);

export const dashboardBenchmark: Benchmark = {
  name: "dashboard",
  measures: `a region of ${objects} objects in Chromium, ${changesPerSecond} changes per second, ${browsers} browsers on one server`,
  async run(signal) {
    const chromium = await findDebianProgram({
      title: "Chromium",
      packageName: "chromium",
      names: ["chromium", "chromium-browser", "google-chrome"],
    });
    if (chromium.kind === "missing") return [`SKIPPED: ${chromium.what}`];
    const minutes = Number(process.env["minutes"] ?? 10);
    if (!(minutes > 0)) throw new Error(`minutes must be a positive number, not ${process.env["minutes"]}`);
    const folder = await mkdtemp(join(tmpdir(), "krane-bench-dashboard-"));
    const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
    const binaries = await findPostgresBinaries(undefined);
    // Beside the folder and not in it: a database started by root runs under another account.
    const dataDir = await mkdtemp(join(tmpdir(), "krane-bench-data-"));
    const postgres = await startEmbeddedPostgres(
      { dataDir, binaries, uid: process.getuid?.() },
      deps,
      signal,
    );
    try {
      const { store, close } = await startPostgresStore(postgres.config, deps);
      try {
        const fleet = new BusyFleet(region, { store, clock: deps.clock });
        await fleet.fill(objects);
        await writeFile(join(folder, "database.url"), databaseUrl(postgres.config), { mode: 0o600 });
        await writeFile(join(folder, "people"), people(), { mode: 0o600 });
        await writeFile(join(folder, "agents"), `${region} token-of-the-agents\n`, { mode: 0o600 });
        return await measure(fleet, { folder, minutes, executablePath: chromium.path }, signal);
      } finally {
        await close();
      }
    } finally {
      await postgres.stop();
      await Promise.all([folder, dataDir].map((each) => rm(each, { recursive: true })));
    }
  },
};

function people(): string {
  return tokens.map((token, index) => `person-${index} read-write ${token}\n`).join("");
}

interface Options {
  readonly folder: string;
  readonly minutes: number;
  readonly executablePath: string;
}

async function measure(
  fleet: BusyFleet,
  { folder, minutes, executablePath }: Options,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const files = {
    "database-url-file": "database.url",
    "agent-tokens-file": "agents",
    "admin-tokens-file": "people",
  };
  const server = await startServer({ folder, files, port }, signal);
  let streams: FollowedStreams | undefined;
  let page: WatchedPage | undefined;
  try {
    streams = await followFleets(browsers, { url, tokens });
    page = await WatchedPage.open({ executablePath, url, token: tokens[0] ?? "", region });
    const heapAtFirst = await page.heapBytes();
    const cpuBefore = await cpuSeconds([server]);
    const pageCpuBefore = await page.cpuSeconds();
    const began = performance.now();
    const traffic = await changeFor(minutes * 60_000, fleet, page, signal);
    const seconds = (performance.now() - began) / 1_000;
    const cpu = (await cpuSeconds([server])) - cpuBefore;
    const pageCpu = (await page.cpuSeconds()) - pageCpuBefore;
    const heapAtLast = await page.heapBytes();
    return report({
      ...{ figures: await page.figures(), traffic, seconds, streams, cpu, pageCpu },
      heap: [heapAtFirst, heapAtLast],
      resident: await residentBytes(server),
    });
  } finally {
    await page?.close();
    await streams?.stop();
    server.kill("SIGKILL");
  }
}

interface Traffic {
  readonly changes: number;
  /** When each image of the marker was set. */
  readonly markedAtMs: ReadonlyMap<string, number>;
}

/** Changes as fast as agreed, and now and then something whose way is timed. */
async function changeFor(
  durationMs: number,
  fleet: BusyFleet,
  page: WatchedPage,
  signal: AbortSignal,
): Promise<Traffic> {
  const clock = createSystemClock();
  const startMs = clock.nowMs();
  const markedAtMs = new Map<string, number>();
  const perTurn = changesPerSecond / 10;
  let changes = 0;
  const mark = async (tag: string) => {
    markedAtMs.set(imageOf(tag), Date.now());
    await fleet.mark(tag);
  };
  for (let turn = 0; clock.nowMs() - startMs < durationMs; turn += 1) {
    await fleet.change(perTurn, objects);
    changes += perTurn;
    if (turn % 20 === 10) {
      await mark(`mark-${turn}`);
      changes += 1;
    }
    if (turn % 50 === 25) await fleet.beat();
    if (turn % 100 === 75) await page.search();
    const nextMs = startMs + (turn + 1) * 100;
    await sleep(clock, Math.max(0, nextMs - clock.nowMs()), signal);
  }
  // A busy machine may still be behind.
  await mark("the-last");
  await page.sees(imageOf("the-last"));
  return { changes, markedAtMs };
}

function report(found: {
  readonly figures: PageFigures;
  readonly traffic: Traffic;
  readonly seconds: number;
  readonly streams: FollowedStreams;
  readonly cpu: number;
  readonly pageCpu: number;
  readonly heap: readonly [number, number];
  readonly resident: number;
}): readonly string[] {
  const { figures, traffic, seconds, streams, cpu, pageCpu, heap, resident } = found;
  const { frameMs, keyMs, seen } = figures;
  // A short run on a slow machine may lack some.
  const p = (values: readonly number[], percent: number) =>
    values.length === 0 ? "?" : percentile(values, percent).toFixed(0);
  const seenAfter = seen.flatMap(([image, atMs]) => {
    const fromMs = traffic.markedAtMs.get(image);
    return fromMs === undefined ? [] : [atMs - fromMs];
  });
  const marks = [...traffic.markedAtMs.values()];
  const heardAfter = streams.heardAtMs.map((atMs) => atMs - (marks.findLast((each) => each <= atMs) ?? atMs));
  const slow = frameMs.filter((ms) => ms > 50).length;
  const [first, last] = heap.map((bytes) => bytes / 1e6) as [number, number];
  return [
    `${traffic.changes} changes in ${seconds.toFixed(0)} s: ${(traffic.changes / seconds).toFixed(0)} per second`,
    `frames: p50 ${p(frameMs, 50)} ms, p95 ${p(frameMs, 95)} ms (goal: under 34), p99 ${p(frameMs, 99)} ms (goal: under 50), longest ${p(frameMs, 100)} ms; ${((100 * slow) / frameMs.length).toFixed(2)} % above 50 ms`,
    `a key in the search until it is drawn: p50 ${p(keyMs, 50)} ms, p95 ${p(keyMs, 95)} ms (goal: under 100)`,
    `change until the page shows it: p50 ${p(seenAfter, 50)} ms, p95 ${p(seenAfter, 95)} ms (goal: under 1000); ${seenAfter.length} of ${marks.length} seen one by one`,
    `CPU of the page: ${((100 * pageCpu) / seconds).toFixed(0)} % of one core (goal: under 30), with a frame ${(frameMs.length / seconds).toFixed(0)} times per second`,
    `heap of the page: ${first.toFixed(1)} MB at first, ${last.toFixed(1)} MB at last (goal: under 100, and at most 10 more)`,
    `${streams.openCount()} of ${browsers} streams open at the end (goal: all)${[...new Set(streams.broken)].map((why) => `, ${why}`).join("")}; change until a browser hears it: p50 ${p(heardAfter, 50)} ms, p95 ${p(heardAfter, 95)} ms (goal: under 1000)`,
    `server: ${((100 * cpu) / seconds).toFixed(0)} % of one core, ${(resident / 1e6).toFixed(0)} MB in memory at the end (goal: under 300)`,
  ];
}
