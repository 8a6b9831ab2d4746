// Measures how long a pod waits for its secrets, and how many pods an agent can serve: DecryptSecretsBlob over HTTP/1.1
// and JSON, as curl sends it, with verdicts and data keys cached. The API server is a stub in a separate process.
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import type { Benchmark } from "./benchmark.ts";
import { median, percentile } from "./statistics.ts";
import { withWorkers } from "./worker-process.ts";
import type { SecretsServerFacts, SecretsServerTask } from "./workers/secrets-server.ts";

const rounds = 3;
const variableCount = 20;
const ids = { deploymentId: "d_bench", environmentId: "env_bench" };
const alone = 1_000;
const crowd = 8_000;
const callers = 16;
// The rate limits allow a burst of 30 calls per pod and 500 per address, so enough of both are used; every address
// of 127.0.0.0/8 is local.
const pods = 400;
const callsPerAddress = 400;
const farAway = 4_102_444_800;

interface Sample {
  readonly latenciesMs: readonly number[];
  readonly perSecond: number;
  readonly cpuSecondsPer10k: number;
}

class Callers {
  private readonly facts: SecretsServerFacts;
  private readonly bodies: readonly string[];
  private calls = 0;
  private agent = new Agent();

  constructor(facts: SecretsServerFacts) {
    this.facts = facts;
    const claims = Buffer.from(JSON.stringify({ exp: farAway })).toString("base64url");
    this.bodies = Array.from({ length: pods }, (_, pod) =>
      JSON.stringify({ encryptedBlob: facts.blob, ...ids, token: `h.${claims}.${pod}` }),
    );
  }

  /** One call from the next pod; resolves with its duration in milliseconds. */
  async call(): Promise<number> {
    const count = this.calls++;
    if (count % callsPerAddress === 0) {
      const address = count / callsPerAddress;
      const localAddress = `127.1.${address >> 8}.${(address & 255) + 1}`;
      this.agent = new Agent({ keepAlive: true, maxSockets: callers, localAddress });
    }
    const startedMs = performance.now();
    const answer = await this.send(
      "POST",
      "/krane.v1.SecretsService/DecryptSecretsBlob",
      this.bodies[count % pods],
    );
    if (Object.keys(JSON.parse(answer).envVars).length !== variableCount) throw new Error(answer);
    return performance.now() - startedMs;
  }

  async cpuSeconds(): Promise<number> {
    return Number(await this.send("GET", "/cpu"));
  }

  private send(method: string, path: string, body = ""): Promise<string> {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const call = request(`${this.facts.url}${path}`, { method, headers, agent: this.agent }, (answer) => {
        text(answer).then(
          (got) => (answer.statusCode === 200 ? resolve(got) : reject(new Error(got))),
          reject,
        );
      });
      call.on("error", reject);
      call.end(body);
    });
  }
}

async function measure(facts: SecretsServerFacts, signal: AbortSignal): Promise<Sample> {
  const client = new Callers(facts);
  const inTurn = async (count: number) => {
    const latenciesMs: number[] = [];
    for (let done = 0; done < count; done++) {
      signal.throwIfAborted();
      latenciesMs.push(await client.call());
    }
    return latenciesMs;
  };
  await inTurn(pods * 2);
  const latenciesMs = await inTurn(alone);
  const before = { cpu: await client.cpuSeconds(), ms: performance.now() };
  await Promise.all(Array.from({ length: callers }, () => inTurn(crowd / callers)));
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
