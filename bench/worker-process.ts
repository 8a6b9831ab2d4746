// Starts the processes that a benchmark measures, or that serve the measured one. Each is bundled in the same way as
// bin/krane: run from the TypeScript sources, a process would include the compiler, which takes more memory than what
// is measured here.
//
// A worker lives at most as long as its parent: it ends with the IPC channel, which the kernel closes even when the
// parent is killed.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { programOptions, requireBanner } from "../tools/bundle.ts";
import { taskVariable } from "./workers/parent.ts";

export interface Workers {
  /** Runs a worker to its end and returns its only message. */
  run<R>(name: string, task: unknown): Promise<R>;
  /** Starts a worker that stays until the end of the benchmark, and returns its first message. */
  start<R>(name: string, task: unknown): Promise<R>;
}

/** Bundles the named files of bench/workers, and removes everything afterwards. */
export async function withWorkers<T>(
  names: readonly string[],
  signal: AbortSignal,
  work: (workers: Workers) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "krane-bench-"));
  const living = new Set<ChildProcess>();
  const killAll = () => {
    for (const child of living) child.kill("SIGKILL");
  };
  const launch = async <R>(name: string, task: unknown) => {
    signal.throwIfAborted();
    // Not as an argument: a task may carry a token, and every user can read arguments.
    const env = { ...process.env, [taskVariable]: JSON.stringify(task) };
    const child = fork(join(folder, `${name}.mjs`), { execArgv: [], env });
    living.add(child);
    const ended = once(child, "exit").finally(() => living.delete(child));
    const message = await Promise.race([once(child, "message"), ended.then(() => undefined)]);
    if (message === undefined) throw new Error(`the worker ${name} ended without a result`);
    return { result: message[0] as R, ended };
  };
  signal.addEventListener("abort", killAll, { once: true });
  try {
    await bundle(names, folder);
    return await work({
      async run<R>(name: string, task: unknown) {
        const { result, ended } = await launch<R>(name, task);
        await ended;
        return result;
      },
      start: async <R>(name: string, task: unknown) => (await launch<R>(name, task)).result,
    });
  } finally {
    signal.removeEventListener("abort", killAll);
    const ends = [...living].map((child) => once(child, "exit"));
    killAll();
    await Promise.all(ends);
    await rm(folder, { recursive: true });
  }
}

async function bundle(names: readonly string[], outdir: string): Promise<void> {
  await build({
    ...programOptions,
    entryPoints: names.map((name) => `bench/workers/${name}.ts`),
    outdir,
    outExtension: { ".js": ".mjs" },
    banner: { js: requireBanner },
  });
}
