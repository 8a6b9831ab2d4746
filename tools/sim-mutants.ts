// `make sim-mutants`: plants each bug of sim/planted-bugs.ts, builds the simulation with it, and counts the seeds until an
// oracle finds it. Each core tries one bug at a time.
//   make sim-mutants              all of them
//   make sim-mutants only=lease   those whose name or file contains the word
//   make sim-mutants seeds=50     seeds per bug at most; default 50
//   make sim-mutants jobs=1       on one core
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import { type PlantedBug, plantedBugs } from "../sim/planted-bugs.ts";
import { bundleSimulation } from "./bundle.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
// A seed takes seconds on an idle core. One that hangs counts as found: its bug keeps the world from ending.
const seedLimitMs = 300_000;

function plant({ file, from, to, without }: PlantedBug): Plugin {
  const path = resolve(root, file);
  return {
    name: "planted-bug",
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, async (args) => {
        if (args.path !== path) return undefined;
        const parts = (await readFile(path, "utf8")).split(from);
        if (parts.length !== 2) throw new Error(`${file}: found ${parts.length - 1} times: ${without}`);
        return { contents: parts.join(to), loader: "ts" };
      });
    },
  };
}

interface Found {
  readonly bug: PlantedBug;
  /** How many seeds it took; undefined if none found it. */
  readonly seeds?: number;
  readonly invariant?: string;
}

async function hunt(bug: PlantedBug, folder: string, seedsMax: number): Promise<Found> {
  const program = join(folder, `${plantedBugs.indexOf(bug)}.mjs`);
  await bundleSimulation(program, [plant(bug)]);
  return { bug, ...(await firstViolation(program, seedsMax)) };
}

/** Runs seeds in one process, which prints a line after each, until one violates an invariant. */
function firstViolation(program: string, seedsMax: number): Promise<Omit<Found, "bug">> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, `seeds=${seedsMax}`, "jobs=1", "shrink=0"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let seeds = 0;
    let invariant: string | undefined;
    const giveUp = () => {
      invariant = "it does not end";
      seeds += 1;
      child.kill("SIGKILL");
    };
    let limit = setTimeout(giveUp, seedLimitMs);
    createInterface({ input: child.stdout }).on("line", (line) => {
      invariant ??= /^seed \d+: (\S+) is violated/.exec(line)?.[1];
      if (!/^seed \d+ /.test(line)) return;
      seeds += 1;
      clearTimeout(limit);
      limit = setTimeout(giveUp, seedLimitMs);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(limit);
      if (invariant !== undefined) resolve({ seeds, invariant });
      else if (code === 0) resolve({});
      else reject(new Error(`the simulation ended with code ${code} and no violation`));
    });
  });
}

function medianOf(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

async function main(): Promise<void> {
  const word = process.env["only"] ?? "";
  const seedsMax = Number(process.env["seeds"] ?? 50);
  const chosen = plantedBugs.filter(({ without, file }) => `${without} ${file}`.includes(word));
  const folder = await mkdtemp(join(tmpdir(), "krane-mutants-"));
  const found: Found[] = [];
  const waiting = chosen.values();
  const work = async () => {
    for (const bug of waiting) {
      const one = await hunt(bug, folder, seedsMax);
      found.push(one);
      const how = one.seeds === undefined ? "NOT FOUND" : `${one.invariant} by seed ${one.seeds}`;
      console.log(`${found.length}/${chosen.length} ${how}: without "${bug.without}" (${bug.file})`);
    }
  };
  try {
    const jobs = Number(process.env["jobs"] ?? availableParallelism());
    await Promise.all(Array.from({ length: jobs }, work));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const seeds = found.flatMap((one) => one.seeds ?? []);
  console.log(`found ${seeds.length} of ${chosen.length}, after ${medianOf(seeds)} seeds in the median`);
  for (const { bug } of found.filter((one) => one.seeds === undefined))
    console.log(`  not found within ${seedsMax} seeds: without "${bug.without}"`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
