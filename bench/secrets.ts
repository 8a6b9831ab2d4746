// Measures how long a pod waits for its secrets, and how many pods an agent can serve: DecryptSecretsBlob over HTTP/1.1
// and JSON, as curl sends it, with verdicts and data keys cached. The API server is a stub in a separate process.
import type { Benchmark } from "./benchmark.ts";
import { SecretsCallers } from "./secrets-callers.ts";
import { median, percentile } from "./statistics.ts";
import { withWorkers } from "./worker-process.ts";
import type { SecretsServerFacts, SecretsServerTask } from "./workers/secrets-server.ts";

const rounds = 3;
const variableCount = 20;
const ids = { deploymentId: "d_bench", environmentId: "env_bench" };
const alone = 1_000;
const crowd = 8_000;
const callers = 16;
const pods = 400;
const farAway = 4_102_444_800;

interface Sample {
  readonly latenciesMs: readonly number[];
  readonly perSecond: number;
  readonly cpuSecondsPer10k: number;
}

async function measure({ url, blob }: SecretsServerFacts, signal: AbortSignal): Promise<Sample> {
  const claims = Buffer.from(JSON.stringify({ exp: farAway })).toString("base64url");
  const bodies = Array.from({ length: pods }, (_, pod) =>
    JSON.stringify({ encryptedBlob: blob, ...ids, token: `h.${claims}.${pod}` }),
  );
  const client = new SecretsCallers({ url, bodies, variables: variableCount, callers });
  await client.inTurn(pods * 2, signal);
  const latenciesMs = await client.inTurn(alone, signal);
  const before = { cpu: await client.cpuSeconds(), ms: performance.now() };
  await client.together(crowd, signal);
  const seconds = (performance.now() - before.ms) / 1_000;
  const cpu = (await client.cpuSeconds()) - before.cpu;
  return { latenciesMs, perSecond: crowd / seconds, cpuSecondsPer10k: (cpu / crowd) * 10_000 };
}

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const samples: Record<SecretsServerTask["side"], Sample[]> = { krane: [], raw: [] };
  const variables = Object.fromEntries(
    Array.from({ length: variableCount }, (_, index) => [`VARIABLE_${index}`, `value ${index} `.repeat(4)]),
  );
  await withWorkers(["secrets-api", "secrets-server"], signal, async (workers) => {
    const { url: apiUrl } = await workers.start<{ url: string }>("secrets-api", ids);
    for (let round = 0; round < rounds; round++) {
      for (const side of ["krane", "raw"] as const) {
        const task: SecretsServerTask = { side, apiUrl, ...ids, variables };
        const facts = await workers.start<SecretsServerFacts>("secrets-server", task);
        samples[side].push(await measure(facts, signal));
      }
    }
  });
  const of = (side: SecretsServerTask["side"], figure: (sample: Sample) => number) =>
    median(samples[side].map(figure));
  const line = (name: string, figure: (sample: Sample) => number, show: (value: number) => string) => {
    const [krane, raw] = [of("krane", figure), of("raw", figure)];
    return `${name}: krane ${show(krane)}, raw ${show(raw)}, ratio ${(krane / raw).toFixed(2)}`;
  };
  const ms = (value: number) => `${value.toFixed(2)} ms`;
  return [
    line("one after the other, p50", ({ latenciesMs }) => percentile(latenciesMs, 50), ms),
    line("one after the other, p99", ({ latenciesMs }) => percentile(latenciesMs, 99), ms),
    line(
      `rate with ${callers} callers`,
      ({ perSecond }) => perSecond,
      (value) => `${value.toFixed(0)}/s`,
    ),
    line(
      "CPU per 10,000",
      ({ cpuSecondsPer10k }) => cpuSecondsPer10k,
      (value) => `${value.toFixed(1)} CPU-s`,
    ),
    `${variableCount} variables, ${pods} pods, verdicts and data key in memory; raw reads the pod and decrypts, and checks nothing; median of ${rounds} rounds each, taking turns`,
  ];
}

export const secretsBenchmark: Benchmark = {
  name: "secrets",
  measures: "DecryptSecretsBlob, warm, beside a bare Node server that asks and decrypts the same",
  run,
};
