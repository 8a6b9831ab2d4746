// Measures how fast thousands of deployments are applied, compared with a bare client. A single run says little: on a
// shared machine two identical runs differ by a fifth. So the sides alternate, and the median ratio counts.
import { median } from "../statistics.ts";
import type { Workers } from "../worker-process.ts";
import type { BenchRegion } from "./bench-region.ts";
import { objectCount, type SampleSet } from "./sample-set.ts";
import { measureAgent, measureRaw, type Throughput } from "./throughput.ts";

export interface Sets {
  readonly agent: SampleSet;
  readonly raw: SampleSet;
}

export interface Turn {
  readonly applied: Throughput;
  /** One per concurrency. */
  readonly raw: readonly Throughput[];
  readonly peakMb: number;
}

const goal = { ratio: 0.85, peakMb: 150 };

/** One run of each side, each in an empty cluster. The order alternates, in case the machine slows down. */
export async function measureTurn(
  inRegion: <T>(work: (region: BenchRegion) => Promise<T>) => Promise<T>,
  workers: Workers,
  {
    turn,
    sets,
    inFlight,
  }: { readonly turn: number; readonly sets: Sets; readonly inFlight: readonly number[] },
): Promise<Turn> {
  const agentSide = () =>
    inRegion(async (region) => {
      const agent = await region.startAgent();
      const applied = await measureAgent(region, agent, sets.agent);
      return { applied, peakMb: agent.peakMb() };
    });
  const rawSide = async () => {
    const raw: Throughput[] = [];
    for (const level of inFlight)
      raw.push(await inRegion((region) => measureRaw(region, workers, level, sets.raw)));
    return { raw };
  };
  if (turn % 2 === 0) return { ...(await agentSide()), ...(await rawSide()) };
  return { ...(await rawSide()), ...(await agentSide()) };
}

export function turnLines(
  turns: readonly Turn[],
  sets: Sets,
  inFlight: readonly number[],
): readonly string[] {
  const krane = turns.map(({ applied }) => applied);
  const levels = inFlight.map((level, index) => ({
    level,
    runs: turns.flatMap(({ raw }) => raw.slice(index, index + 1)),
  }));
  const raw = levels.reduce((a, b) => (medianRate(b.runs) > medianRate(a.runs) ? b : a));
  const ratios = (figure: "objectsPerSecond" | "cpuSeconds") =>
    median(krane.map((run, turn) => run[figure] / (raw.runs[turn]?.[figure] ?? Number.NaN)));
  const objects = objectCount(sets.agent);
  const rate = (perSecond: number) => `${perSecond.toFixed(0)}/s (${(objects / perSecond).toFixed(1)} s)`;
  const cpu = (runs: readonly Throughput[]) =>
    `${median(runs.map(({ cpuSeconds }) => cpuSeconds)).toFixed(2)} s`;
  const rates = (runs: readonly Throughput[]) =>
    runs.map((run) => run.objectsPerSecond.toFixed(0)).join(", ");
  return [
    `${sets.agent.deployments} deployments, ${objects} objects: krane ${rate(medianRate(krane))}, raw ${rate(medianRate(raw.runs))} with ${raw.level} in flight, ratio ${ratios("objectsPerSecond").toFixed(2)} (goal: at least ${goal.ratio}), each the median of ${turns.length} turns`,
    `the turns: krane ${rates(krane)}${levels.map(({ level, runs }) => `; raw with ${level} in flight ${rates(runs)}`).join("")}`,
    `CPU of that: krane ${cpu(krane)}, reports included, raw ${cpu(raw.runs)}, ratio ${ratios("cpuSeconds").toFixed(2)}`,
    `peak memory of the agent: ${Math.max(...turns.map(({ peakMb }) => peakMb)).toFixed(0)} MB, the highest of the turns (goal: under ${goal.peakMb} MB)`,
  ];
}

function medianRate(runs: readonly Throughput[]): number {
  return median(runs.map(({ objectsPerSecond }) => objectsPerSecond));
}
