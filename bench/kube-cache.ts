// Measures the memory and time to cache 20,000 pods, compared with a cache of whole pods, filled the same way, and
// with a Node process that does nothing.
import type { Benchmark } from "./benchmark.ts";
import { median } from "./statistics.ts";
import { withWorkers } from "./worker-process.ts";
import type { PodCacheResult, PodCacheTask } from "./workers/pod-cache.ts";

const rounds = 3;
const pods = 20_000;
const goal = { bytesPerPod: 400, residentMb: 120 };

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const samples = {
    streamed: [] as PodCacheResult[],
    paged: [] as PodCacheResult[],
    whole: [] as PodCacheResult[],
  };
  const bareMb: number[] = [];
  await withWorkers(["pod-server", "pod-cache", "bare"], signal, async (workers) => {
    const serve = (streamsInitialState: boolean) =>
      workers.start<{ url: string }>("pod-server", { pods, streamsInitialState, changes: 0 });
    const [streaming, paging] = [await serve(true), await serve(false)];
    const fill = async (url: string, keeps: PodCacheTask["keeps"]) => {
      const result = await workers.run<PodCacheResult>("pod-cache", { url, keeps });
      if (result.cached !== pods) throw new Error(`${result.cached} pods were cached of ${pods}`);
      return result;
    };
    for (let round = 0; round < rounds; round++) {
      samples.streamed.push(await fill(streaming.url, "projection"));
      samples.paged.push(await fill(paging.url, "projection"));
      samples.whole.push(await fill(streaming.url, "whole"));
      bareMb.push((await workers.run<{ residentMb: number }>("bare", {})).residentMb);
    }
  });
  const of = (side: keyof typeof samples, figure: keyof PodCacheResult) =>
    median(samples[side].map((sample) => sample[figure]));
  const [kept, whole] = [of("streamed", "heapBytesPerPod"), of("whole", "heapBytesPerPod")];
  const bare = median(bareMb);
  const resident = (side: "streamed" | "paged") => {
    const mb = of(side, "residentMb");
    return `krane ${mb.toFixed(0)} MB (peak ${of(side, "peakMb").toFixed(0)}), bare Node ${bare.toFixed(0)} MB, ratio ${(mb / bare).toFixed(2)} (goal: under ${goal.residentMb} MB)`;
  };
  return [
    `heap per pod:     krane ${kilobytes(kept)} KB, whole pod ${kilobytes(whole)} KB, ratio ${(kept / whole).toFixed(2)} (goal: under ${kilobytes(goal.bytesPerPod)} KB)`,
    `memory, streamed: ${resident("streamed")}`,
    `memory, paged:    ${resident("paged")}`,
    `20,000 pods of 5.6 KB through the reflector over HTTP; median of ${rounds} rounds each, taking turns`,
  ];
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(2);
}

export const kubeCacheBenchmark: Benchmark = {
  name: "kube-cache",
  measures: "a process that caches 20,000 pods, beside whole pods and beside bare Node",
  run,
};
