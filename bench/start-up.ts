// Measures the time from starting the bundle until it reports that it has started, with an
// empty cluster in this process and no control plane, and its memory then. The raw limit is
// a Node process that opens one HTTP server and nothing else. The two alternate, so that
// noise affects both.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { serveCluster } from "../test/support/served-cluster.ts";
import { nodeEnvironment, nodeFlags } from "../tools/bundle.ts";
import type { Benchmark } from "./benchmark.ts";
import { median } from "./statistics.ts";

const rounds = 10;
const startLimitMs = 20_000;
const goal = { startMs: 400, residentMb: 90 };

interface Sample {
  readonly startMs: number;
  readonly residentMb: number;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  server.close();
  await once(server, "close");
  return address.port;
}

function answers(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("error", () => resolve(false));
  });
}

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

async function measure(
  args: readonly string[],
  port: number,
  path: string,
  signal: AbortSignal,
): Promise<Sample> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, {
    stdio: "ignore",
    env: { ...process.env, ...nodeEnvironment },
  });
  const exited = once(child, "exit");
  try {
    while (!(await answers(port, path))) {
      signal.throwIfAborted();
      if (child.exitCode !== null) throw new Error(`${args.join(" ")} exited with ${child.exitCode}`);
      if (performance.now() - startedAt > startLimitMs) throw new Error(`${args.join(" ")} did not start`);
      await delay(2);
    }
    const startMs = performance.now() - startedAt;
    return { startMs, residentMb: await residentMb(child.pid ?? 0) };
  } finally {
    child.kill("SIGTERM");
    await exited;
  }
}

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "krane-bench-"));
  const cluster = await serveCluster();
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfig);
  const samples: { krane: Sample[]; raw: Sample[] } = { krane: [], raw: [] };
  try {
    for (let round = 0; round < rounds; round++) {
      const [rpcPort, metricsPort] = [await freePort(), await freePort()];
      const config = join(folder, "krane.toml");
      await writeFile(
        config,
        `region = "bench.local"\nrpc_port = ${rpcPort}\n[control]\nurl = "http://127.0.0.1:1"\ntoken = "bench"\n` +
          `[kubernetes]\nkubeconfig = "${kubeconfig}"\n[observability.metrics]\nprometheus_port = ${metricsPort}\n`,
      );
      samples.krane.push(
        await measure(
          [...nodeFlags, "bin/krane", "agent", "--config", config],
          rpcPort,
          "/health/startup",
          signal,
        ),
      );
      const server = `require("http").createServer((q,r)=>r.end("ok")).listen(${rpcPort},"127.0.0.1")`;
      samples.raw.push(await measure(["-e", server], rpcPort, "/", signal));
    }
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true });
  }
  const kraneMs = median(samples.krane.map((s) => s.startMs));
  const rawMs = median(samples.raw.map((s) => s.startMs));
  const kraneMb = median(samples.krane.map((s) => s.residentMb));
  const rawMb = median(samples.raw.map((s) => s.residentMb));
  return [
    `start to started: krane ${kraneMs.toFixed(0)} ms, bare Node ${rawMs.toFixed(0)} ms, ratio ${(kraneMs / rawMs).toFixed(2)} (goal: under ${goal.startMs} ms)`,
    `resident memory:  krane ${kraneMb.toFixed(0)} MB, bare Node ${rawMb.toFixed(0)} MB, ratio ${(kraneMb / rawMb).toFixed(2)} (goal: under ${goal.residentMb} MB)`,
    `median of ${rounds} starts each, taking turns`,
  ];
}

export const startUpBenchmark: Benchmark = {
  name: "start-up",
  measures: "the bundle from spawn to a started health endpoint, beside a bare Node server",
  run,
};
