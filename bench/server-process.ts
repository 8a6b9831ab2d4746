// A process of `krane server` that a benchmark starts, and what the kernel says about it.
import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import { eventually } from "../test/support/eventually.ts";
import { nodeFlags } from "../tools/bundle.ts";

export interface ServerPlace {
  /** Holds the files. */
  readonly folder: string;
  /** Their names, by flag. */
  readonly files: Readonly<Record<string, string>>;
  readonly port: number;
}

/** Resolves once it serves. It ends with the signal. */
export async function startServer(
  { folder, files, port }: ServerPlace,
  signal: AbortSignal,
): Promise<ChildProcess> {
  const flags = Object.entries(files).flatMap(([flag, name]) => [`--${flag}`, join(folder, name)]);
  const args = [...nodeFlags, "bin/krane", "server", ...flags, "--listen", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"], signal });
  child.on("error", () => undefined);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await eventually(
    "the server has started",
    () => {
      if (child.exitCode !== null) throw new Error(said);
      if (!said.includes("is serving")) throw new Error(`it said: ${said}`);
    },
    { deadlineMs: 120_000, signal },
  );
  return child;
}

export function databaseUrl({ host = "", port, user, password }: ClientConfig): string {
  return `postgres://${user}:${password}@${encodeURIComponent(host)}:${port}/postgres`;
}

/** The CPU time used so far; the kernel counts in hundredths of a second. */
export async function cpuSeconds(children: readonly ChildProcess[]): Promise<number> {
  let ticks = 0;
  for (const { pid } of children) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / 100;
}

/** What the process has in memory now. */
export async function residentBytes({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}
