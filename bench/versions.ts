// Compares this agent with the version that users upgrade from: both bundled programs, by turns, each in its own empty
// real cluster. It shows what a change has cost, which two separate runs on a shared machine do not.
//   make bench only=versions                           this checkout, and the version that users upgrade from
//   make bench only=versions before=COMMIT now=COMMIT  others; both are full hashes
import { resolvePreviousVersion } from "../test/support/previous-version.ts";
import { resolveKubeBinaries } from "../tools/kube-binaries.ts";
import type { Benchmark } from "./benchmark.ts";
import { withDividedCores } from "./cores.ts";
import { type AgentVault, ownProgram } from "./deployments/agent-process.ts";
import { type BenchRegion, withRegion } from "./deployments/bench-region.ts";
import { measureChange, measureRepairs } from "./deployments/latencies.ts";
import { measureResync } from "./deployments/resync-cost.ts";
import { measureSecrets, withVault } from "./deployments/secrets-cost.ts";
import { measureAgent } from "./deployments/throughput.ts";
import { median, percentile } from "./statistics.ts";

const deployments = 2_000;
const namespaces = 50;
/** An odd number, so that there is a median. */
const turns = 5;
/** What may get worse. */
const allowance = 1.1;
const edited = Array.from({ length: 20 }, (_, index) => index);
const changed = Array.from({ length: 30 }, (_, index) => edited.length + index);

interface Figures {
  readonly objectsPerSecond: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
  readonly resyncCpuSeconds: number;
  readonly changeMs: number;
  readonly repairMs: number;
  readonly secretsMs: number;
  readonly secretsCpuSeconds: number;
}

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const report = (line: string) => console.error(line);
  const binaries = await resolveKubeBinaries(process.env, { report }, signal);
  if (binaries.kind === "missing") return [`skipped: ${binaries.what}`];
  const previous = await resolvePreviousVersion(process.env, signal, process.env["before"]);
  if (previous.kind === "missing") return [`skipped: ${previous.what}`];
  const present = await presentVersion(signal);
  if (present.kind === "missing") return [`skipped: ${present.what}`];
  return withDividedCores(async (cores) => {
    const place = { binariesDir: binaries.dir, cores };
    const measure = (program: string) =>
      withVault((vault) => withRegion(place, signal, (region) => measureVersion(region, program, vault)));
    const now: Figures[] = [];
    const before: Figures[] = [];
    for (let turn = 0; turn < turns; turn++) {
      report(`turn ${turn + 1} of ${turns}`);
      // The order alternates, in case the machine slows down.
      if (turn % 2 === 0) before.push(await measure(previous.program));
      now.push(await measure(present.program));
      if (turn % 2 !== 0) before.push(await measure(previous.program));
    }
    const line = lineOf(now, before);
    return [
      line("objects per second", "objectsPerSecond", "at least", 0),
      line("CPU-s of that", "cpuSeconds", "at most", 2),
      line("peak memory of the agent, MB", "peakMb", "at most", 0),
      line("resync in sync, CPU-s", "resyncCpuSeconds", "at most", 2),
      line("change to applied, p50 in ms", "changeMs", "at most", 1),
      line("hand edit to repaired, p50 in ms", "repairMs", "at most", 1),
      line("secrets of a pod, p50 in ms", "secretsMs", "at most", 2),
      line("CPU-s of the agent for 1,000 of them", "secretsCpuSeconds", "at most", 2),
      `${deployments} deployments in ${namespaces} namespaces; the median of ${turns} turns each`,
      cores.about,
    ];
  });
}

async function presentVersion(signal: AbortSignal) {
  const commit = process.env["now"];
  if (commit === undefined) return { kind: "ready", program: ownProgram } as const;
  return resolvePreviousVersion(process.env, signal, commit);
}

async function measureVersion(region: BenchRegion, program: string, vault: AgentVault): Promise<Figures> {
  const set = { name: "krane", deployments, namespaces };
  const agent = await region.startAgent({ program, vault });
  const { objectsPerSecond, cpuSeconds } = await measureAgent(region, agent, set);
  const peakMb = agent.peakMb();
  const resync = await measureResync(region, agent, deployments);
  const changes: number[] = [];
  for (const index of changed) changes.push(await measureChange(region, set, index));
  const repairs = await measureRepairs(region, set, edited);
  const secrets = await measureSecrets(region, agent, set, vault);
  return {
    objectsPerSecond,
    cpuSeconds,
    peakMb,
    resyncCpuSeconds: resync.cpuSeconds,
    changeMs: percentile(changes, 50),
    repairMs: percentile(repairs, 50),
    secretsMs: secrets.p50Ms,
    secretsCpuSeconds: secrets.cpuSeconds,
  };
}

function lineOf(now: readonly Figures[], before: readonly Figures[]) {
  return (name: string, figure: keyof Figures, goal: "at least" | "at most", digits: number) => {
    const of = (runs: readonly Figures[]) => median(runs.map((run) => run[figure]));
    const all = (runs: readonly Figures[]) => runs.map((run) => run[figure].toFixed(digits)).join(", ");
    const limit = goal === "at least" ? 1 / allowance : allowance;
    return (
      `${name}: ${of(now).toFixed(digits)}, before ${of(before).toFixed(digits)}, ` +
      `ratio ${(of(now) / of(before)).toFixed(2)} (goal: ${goal} ${limit.toFixed(2)}); the turns: ${all(now)}; before ${all(before)}`
    );
  };
}

export const versionsBenchmark: Benchmark = {
  name: "versions",
  measures: "this agent beside the version that users upgrade from, by turns",
  run,
};
