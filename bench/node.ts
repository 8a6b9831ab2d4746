// Measures a deployment on a real node with gVisor: from the order at the control plane until its program answers HTTP and
// is reported, and what each part takes. The raw limit is the same ReplicaSet sent straight to the API server. Also krane's
// image, the start of its container, and the memory that the kernel counts for it.
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runInBox } from "../test/support/node/box.ts";
import { prepareNode } from "../test/support/node/prepared-node.ts";
import type { Benchmark } from "./benchmark.ts";
import { type Journey, type NodeFigures, partsOf, steps } from "./node/figures.ts";
import { median, percentile, ratio } from "./statistics.ts";

const program = fileURLToPath(new URL("./node/box-program.ts", import.meta.url));

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const prepared = await prepareNode(process.env, (line) => console.error(line), signal);
  if (prepared.kind === "missing") return [`SKIPPED: ${prepared.what}`];
  const folder = await mkdtemp(join(tmpdir(), "krane-bench-"));
  const resultPath = join(folder, "figures.json");
  try {
    const args = [...process.execArgv, program, JSON.stringify(prepared.options), resultPath];
    const isDone = await runInBox(() => ({ file: process.execPath, args, env: process.env }), signal);
    if (!isDone) throw new Error("the program in the box failed");
    const figures = JSON.parse(await readFile(resultPath, "utf8")) as NodeFigures;
    const image = prepared.options.images.find((path) => basename(path).startsWith("krane-"));
    return [...report(figures), ...(image === undefined ? [] : [await reportImage(image)])];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function report({ krane, raw, states, agent }: NodeFigures): readonly string[] {
  const kraneMs = krane.map(({ answered }) => answered);
  const rawMs = raw.map(({ answered }) => answered);
  const own = krane.map((journey) => {
    const { applied, reported } = partsOf(journey);
    return applied + reported;
  });
  return [
    `order to first HTTP answer: krane ${spread(kraneMs)}, raw ${spread(rawMs)}, ratio of p50 ${ratio(median(kraneMs), median(rawMs))}`,
    ...steps.map(({ name, what }) => `  ${what}: ${besides(name, krane, raw)}`),
    `krane's own share (order to applied, Ready to reported): ${spread(own)}, ${((100 * median(own)) / median(krane.map(({ reported }) => reported))).toFixed(0)} % of order to reported`,
    "state at the API server to `krane why`:",
    ...states.map(({ name, delaysMs }) => `  ${name}: ${range(delaysMs)}, ${delaysMs.length} times`),
    `container start to started: ${spread(agent.startMs)}`,
    `memory of the agent's container: ${megabytes(agent.anonymousBytes)} MB of its own, ${megabytes(agent.chargedBytes)} MB with the files that it read`,
    `${krane.length} orders each, one after the other, taking turns; ${agent.startMs.length} starts of the agent`,
  ];
}

function besides(name: keyof Journey, krane: readonly Journey[], raw: readonly Journey[]): string {
  const partOf = (journeys: readonly Journey[]) => journeys.map((journey) => partsOf(journey)[name]);
  return name === "reported"
    ? `krane ${spread(partOf(krane))}`
    : `krane ${spread(partOf(krane))}, raw ${spread(partOf(raw))}`;
}

async function reportImage(path: string): Promise<string> {
  const { size } = await stat(path);
  return `image: ${megabytes(size)} MB as an OCI archive, with Node and a base of Debian packages`;
}

function spread(values: readonly number[]): string {
  return `p50 ${median(values).toFixed(0)} ms, p99 ${percentile(values, 99).toFixed(0)} ms`;
}

/** For a few values. */
function range(values: readonly number[]): string {
  return `p50 ${median(values).toFixed(0)} ms, longest ${Math.max(...values).toFixed(0)} ms`;
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(0);
}

export const nodeBenchmark: Benchmark = {
  name: "node",
  measures: "a deployment in gVisor on a real node, from the order to the first HTTP answer and the report",
  run,
};
