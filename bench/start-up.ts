// Measures the time from starting an agent until it reports that it has started, with an empty cluster in this process and no
// control plane, and its memory then and at rest. On this Node it is bin/krane, and on Node 24 the program of the image. The raw
// limit is a process of the same Node that opens one HTTP server and nothing else. All alternate, so that noise affects each.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { findNode24 } from "../test/support/node24.ts";
import { serveCluster } from "../test/support/served-cluster.ts";
import { nodeEnvironment, nodeFlags } from "../tools/bundle.ts";
import type { Benchmark } from "./benchmark.ts";
import { median, ratio } from "./statistics.ts";

const rounds = 8;
const restMs = 3_000;
const startLimitMs = 20_000;
const goal = { startMs: 300, startedMb: 80, restingMb: 70 };

interface Sample {
  readonly startMs: number;
  readonly startedMb: number;
  readonly restingMb: number;
}

interface Program {
  readonly name: string;
  readonly node: string;
  readonly file: string;
  readonly krane: Sample[];
  readonly raw: Sample[];
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
  node: string,
  args: readonly string[],
  port: number,
  path: string,
  signal: AbortSignal,
): Promise<Sample> {
  const startedAt = performance.now();
  const child = spawn(node, args, {
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
    const startedMb = await residentMb(child.pid ?? 0);
    await delay(restMs, undefined, { signal });
    return { startMs, startedMb, restingMb: await residentMb(child.pid ?? 0) };
  } finally {
    child.kill("SIGTERM");
    await exited;
  }
}

/** As the Dockerfile lays it out. */
async function layOutImage(folder: string): Promise<string> {
  const program = join(folder, "krane.mjs");
  await copyFile("deploy/image/krane.mjs", program);
  await cp(".cache/agent", join(folder, "agent"), { recursive: true });
  return program;
}

async function findPrograms(folder: string): Promise<readonly Program[]> {
  const nothing = () => ({ krane: [], raw: [] });
  const own = { name: `Node ${process.version}`, node: process.execPath, file: "bin/krane", ...nothing() };
  const node = findNode24();
  if (node === undefined) return [own];
  return [own, { name: "Node 24, image", node, file: await layOutImage(folder), ...nothing() }];
}

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "krane-bench-"));
  const cluster = await serveCluster();
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfig);
  const programs = await findPrograms(folder);
  try {
    for (let round = 0; round < rounds; round++)
      for (const { node, file, krane, raw } of programs) {
        const [rpcPort, metricsPort] = [await freePort(), await freePort()];
        const config = join(folder, "krane.toml");
        await writeFile(
          config,
          `region = "bench.local"\nrpc_port = ${rpcPort}\n[control]\nurl = "http://127.0.0.1:1"\ntoken = "bench"\n` +
            `[kubernetes]\nkubeconfig = "${kubeconfig}"\n[observability.metrics]\nprometheus_port = ${metricsPort}\n`,
        );
        const agent = [...nodeFlags, file, "agent", "--config", config];
        krane.push(await measure(node, agent, rpcPort, "/health/startup", signal));
        const server = `require("http").createServer((q,r)=>r.end("ok")).listen(${rpcPort},"127.0.0.1")`;
        raw.push(await measure(node, ["-e", server], rpcPort, "/", signal));
      }
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true });
  }
  const lines = programs.flatMap(({ name, krane, raw }) => [
    line(`${name}: start to started`, "ms", krane, raw, "startMs"),
    line(`${name}: memory when started`, "MB", krane, raw, "startedMb"),
    line(`${name}: memory at rest`, "MB", krane, raw, "restingMb"),
  ]);
  return [
    ...lines,
    `median of ${rounds} starts each, taking turns; at rest: ${restMs / 1_000} s after the start`,
  ];
}

function line(
  what: string,
  unit: string,
  krane: readonly Sample[],
  raw: readonly Sample[],
  figure: keyof Sample,
): string {
  const [ours, bare] = [krane, raw].map((samples) => median(samples.map((sample) => sample[figure])));
  const values = `krane ${ours?.toFixed(0)} ${unit}, bare Node ${bare?.toFixed(0)} ${unit}`;
  return `${what}: ${values}, ratio ${ratio(ours ?? 0, bare ?? 0)} (goal: at most ${goal[figure]} ${unit})`;
}

export const startUpBenchmark: Benchmark = {
  name: "start-up",
  measures: "the agent from spawn to a started health endpoint and at rest, beside a bare Node server",
  run,
};
