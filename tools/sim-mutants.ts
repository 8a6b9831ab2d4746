// `make sim-mutants`: plants each bug of sim/planted-bugs.ts, builds the simulation with it, and counts the seeds until an
// oracle finds it. Two run at a time.
//   make sim-mutants              all of them
//   make sim-mutants only=lease   those whose name or file contains the word
//   make sim-mutants seeds=50     seeds per bug at most; default 50
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Plugin } from "esbuild";
import { type PlantedBug, plantedBugs } from "../sim/planted-bugs.ts";
import { bundleSimulation } from "./bundle.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
// A seed takes seconds. One that hangs counts as found: its bug keeps the world from ending.
const seedLimitMs = 120_000;

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
  for (let seed = 1; seed <= seedsMax; seed++) {
    const invariant = await violationOf(program, seed);
    if (invariant !== undefined) return { bug, seeds: seed, invariant };
  }
  return { bug };
}

async function violationOf(program: string, seed: number): Promise<string | undefined> {
  try {
    await promisify(execFile)(process.execPath, [program, `seed=${seed}`, "shrink=0"], {
      timeout: seedLimitMs,
      maxBuffer: 64 * 1024 * 1024,
    });
    return undefined;
  } catch (error) {
    const { stdout = "", killed = false } = error as { stdout?: string; killed?: boolean };
    if (killed) return "it does not end";
    const found = /: (\S+) is violated/.exec(stdout)?.[1];
    if (found === undefined) throw error;
    return found;
  }
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
    await Promise.all(Array.from({ length: availableParallelism() }, work));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const seeds = found.flatMap((one) => one.seeds ?? []);
  console.log(`found ${seeds.length} of ${chosen.length}, after ${medianOf(seeds)} seeds in the median`);
  for (const { bug } of found.filter((one) => one.seeds === undefined))
    console.log(`  not found within ${seedsMax} seeds: without "${bug.without}"`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
