// Starts the server of writing-server.ts and keeps what it said it had done.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { WritingServerLine, WritingServerPlan } from "./writing-server.ts";

export type Change = Extract<WritingServerLine, { kind: "changed" }>;

export interface ServerProcess {
  readonly child: ChildProcess;
  readonly port: number;
  /** Acknowledged changes, in order; grows while it runs. */
  readonly changes: readonly Change[];
  /** The end of what it logged. */
  log(): string;
  /** Resolves when so many changes were acknowledged; rejects when it ends before that. */
  changed(count: number): Promise<void>;
  /** Sends the signal and waits until it is gone. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null>;
}

const script = fileURLToPath(new URL("./writing-server.ts", import.meta.url));

export async function startServerProcess(t: TestContext, plan: WritingServerPlan): Promise<ServerProcess> {
  // What reads TypeScript here reads it there.
  const child = spawn(process.execPath, [...process.execArgv, script, JSON.stringify(plan)], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] },
  });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = `${said}${text}`.slice(-4_000);
  });
  const changes: Change[] = [];
  const waiting = new Set<() => void>();
  let isGone = false;
  const gone = once(child, "close").then(([code]: (number | null)[]) => {
    isGone = true;
    for (const wake of waiting) wake();
    return code ?? null;
  });
  const port = await new Promise<number>((resolve, reject) => {
    void gone.then(() => reject(new Error(`the server ended instead of starting: ${said}`)));
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line = JSON.parse(text) as WritingServerLine;
      if (line.kind === "started") resolve(line.port);
      else changes.push(line);
      for (const wake of waiting) wake();
    });
  });
  return {
    child,
    port,
    changes,
    log: () => said,
    async changed(count) {
      while (changes.length < count) {
        if (isGone) throw new Error(`the server ended by itself: ${said}`);
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
        });
        waiting.clear();
      }
    },
    end(signal) {
      child.kill(signal);
      return gone;
    },
  };
}

/** A folder for a server's data. What is left of its database ends with the test. */
export async function createDataDir(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-data-"));
  t.after(async () => {
    const pid = await postmasterPid(folder).catch(() => undefined);
    if (pid !== undefined) process.kill(pid, "SIGKILL");
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  });
  return folder;
}

/** The process of the database in a folder; rejects when none runs. */
export async function postmasterPid(dataDir: string): Promise<number> {
  return Number((await readFile(join(dataDir, "postgres/data/postmaster.pid"), "utf8")).split("\n")[0]);
}
