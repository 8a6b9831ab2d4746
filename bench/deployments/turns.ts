// How fast thousands of deployments arrive, beside a bare client. One run of either side says little: on a shared
// machine two runs of the same differ by a tenth. So they take turns, and the ratio in the middle counts.
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
  readonly raw: Throughput;
  readonly peakMb: number;
}

const goal = { ratio: 0.85, peakMb: 150 };

/** One turn of either side, each in an empty cluster. Who begins changes, in case the machine tires. */
export async function measureTurn(
  inRegion: <T>(work: (region: BenchRegion) => Promise<T>) => Promise<T>,
  workers: Workers,
  { turn, sets, inFlight }: { readonly turn: number; readonly sets: Sets; readonly inFlight: number },
): Promise<Turn> {
  const agentSide = () =>
    inRegion(async (region) => {
      const agent = await region.startAgent();
      const applied = await measureAgent(region, agent, sets.agent);
      return { applied, peakMb: agent.peakMb() };
    });
  const rawSide = () => inRegion((region) => measureRaw(region, workers, inFlight, sets.raw));
  if (turn % 2 === 0) return { ...(await agentSide()), raw: await rawSide() };
  const raw = await rawSide();
  return { ...(await agentSide()), raw };
}

export function turnLines(turns: readonly Turn[], sets: Sets, inFlight: number): readonly string[] {
  const middle = (value: (turn: Turn) => number) => median(turns.map(value));
  const rates = turns.map(({ applied, raw }) => applied.objectsPerSecond / raw.objectsPerSecond);
  const applied = middle((turn) => turn.applied.objectsPerSecond);
  const raw = middle((turn) => turn.raw.objectsPerSecond);
  const cpu = {
    krane: middle((turn) => turn.applied.cpuSeconds),
    raw: middle((turn) => turn.raw.cpuSeconds),
    ratio: middle((turn) => turn.applied.cpuSeconds / turn.raw.cpuSeconds),
  };
  const objects = objectCount(sets.agent);
  const seconds = (perSecond: number) => `${perSecond.toFixed(0)}/s (${(objects / perSecond).toFixed(1)} s)`;
  return [
    `${sets.agent.deployments} deployments, ${objects} objects: krane ${seconds(applied)}, raw ${seconds(raw)} with ${inFlight} in flight, ratio ${median(rates).toFixed(2)} (goal: at least ${goal.ratio}; the turns: ${rates.map((one) => one.toFixed(2)).join(", ")})`,
    `CPU of that: krane ${cpu.krane.toFixed(2)} s, reports included, raw ${cpu.raw.toFixed(2)} s, ratio ${cpu.ratio.toFixed(2)}`,
    `peak memory of the agent: ${Math.max(...turns.map(({ peakMb }) => peakMb)).toFixed(0)} MB, the highest of the turns (goal: under ${goal.peakMb} MB)`,
  ];
}
