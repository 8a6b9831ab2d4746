// Measures decoding a watch against the unavoidable minimum: finding the newlines and parsing the JSON. The two
// alternate, each round in a fresh process.
import type { Benchmark } from "./benchmark.ts";
import { median } from "./statistics.ts";
import { withWorkers } from "./worker-process.ts";
import type { WatchResult, WatchTask } from "./workers/watch-client.ts";

const rounds = 5;
const events = 50_000;

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const samples: Record<WatchTask["side"], WatchResult[]> = { krane: [], raw: [] };
  await withWorkers(["pod-server", "watch-client"], signal, async (workers) => {
    const server = { pods: 0, streamsInitialState: false, changes: events };
    const { url } = await workers.start<{ url: string }>("pod-server", server);
    for (let round = 0; round < rounds; round++) {
      for (const side of ["krane", "raw"] as const) {
        const result = await workers.run<WatchResult>("watch-client", { side, url, events });
        if (result.decoded !== events)
          throw new Error(`${side} decoded ${result.decoded} events of ${events}`);
        samples[side].push(result);
      }
    }
  });
  const of = (side: WatchTask["side"], figure: keyof WatchResult) =>
    median(samples[side].map((sample) => sample[figure]));
  const [krane, raw] = [of("krane", "cpuSeconds"), of("raw", "cpuSeconds")];
  const [kraneMb, rawMb] = [of("krane", "peakMb"), of("raw", "peakMb")];
  return [
    `decoding:    krane ${krane.toFixed(2)} CPU-s, raw ${raw.toFixed(2)} CPU-s per 50,000 events, ratio ${(krane / raw).toFixed(2)}`,
    `peak memory: krane ${kraneMb.toFixed(0)} MB, raw ${rawMb.toFixed(0)} MB, ratio ${(kraneMb / rawMb).toFixed(2)}`,
    `events of 5.6 KB over HTTP; raw is newline scanning and JSON.parse, without a socket; median of ${rounds} rounds each, taking turns`,
  ];
}

export const kubeWatchBenchmark: Benchmark = {
  name: "kube-watch",
  measures: "50,000 watch events decoded, beside newline scanning and JSON.parse alone",
  run,
};
