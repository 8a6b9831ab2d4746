// Measures krane's client against the least that Node can do: the same applies to the same server, which runs in a
// separate process. The two alternate, each round in a fresh process.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Benchmark } from "./benchmark.ts";
import { sampleReplicaSetAnswer } from "./sample-objects.ts";
import { median } from "./statistics.ts";
import { withWorkers } from "./worker-process.ts";
import type { ApplyResult, ApplyTask } from "./workers/apply-task.ts";

const rounds = 5;
const count = 10_000;
const namespace = "tenant";
const goal = 1.2;

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const [cert, key] = await Promise.all(["first.cert.pem", "first.key.pem"].map(readPem));
  const samples: Record<ApplyTask["side"], ApplyResult[]> = { krane: [], raw: [] };
  await withWorkers(["apply-server", "apply-client"], signal, async (workers) => {
    const answer = JSON.stringify(sampleReplicaSetAnswer(namespace, "application"));
    const { url } = await workers.start<{ url: string }>("apply-server", { cert, key, answer });
    const load = {
      url,
      ca: cert,
      token: "bench",
      namespace,
      callers: 16,
      connections: 8,
      warmUp: 1_000,
      count,
    };
    for (let round = 0; round < rounds; round++) {
      for (const side of ["krane", "raw"] as const) {
        samples[side].push(await workers.run<ApplyResult>("apply-client", { ...load, side }));
      }
    }
  });
  const of = (side: ApplyTask["side"], figure: keyof ApplyResult) =>
    median(samples[side].map((sample) => sample[figure]));
  const [krane, raw] = [of("krane", "cpuSeconds"), of("raw", "cpuSeconds")];
  const [kraneRate, rawRate] = [count / of("krane", "seconds"), count / of("raw", "seconds")];
  const [kraneMb, rawMb] = [of("krane", "peakMb"), of("raw", "peakMb")];
  return [
    `applies:     krane ${krane.toFixed(2)} CPU-s, raw ${raw.toFixed(2)} CPU-s per 10,000, ratio ${(krane / raw).toFixed(2)} (goal: at most ${goal.toFixed(2)})`,
    `rate:        krane ${kraneRate.toFixed(0)}/s, raw ${rawRate.toFixed(0)}/s, ratio ${(kraneRate / rawRate).toFixed(2)}`,
    `peak memory: krane ${kraneMb.toFixed(0)} MB, raw ${rawMb.toFixed(0)} MB, ratio ${(kraneMb / rawMb).toFixed(2)}`,
    `PATCH of 2.2 KB, answer of 4 KB, TLS, 16 callers on 8 connections; raw is node:https; median of ${rounds} rounds each, taking turns`,
  ];
}

function readPem(file: string): Promise<string> {
  return readFile(fileURLToPath(new URL(`../testdata/tls/${file}`, import.meta.url)), "utf8");
}

export const kubeClientBenchmark: Benchmark = {
  name: "kube-client",
  measures: "applies through krane's client, beside node:https sending the same bytes",
  run,
};
