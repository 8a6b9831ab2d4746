// Runs `bin/krane agent` as a separate process, and reads its resource use from the kernel.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { eventually } from "../../test/support/eventually.ts";
import { freePort } from "../../test/support/krane-process.ts";
import { nodeEnvironment, nodeFlags } from "../../tools/bundle.ts";

export interface AgentOptions {
  readonly region: string;
  readonly controlUrl: string;
  readonly controlToken: string;
  readonly kubeconfigPath: string;
  readonly workers?: number;
  /** The path of another version than this one. */
  readonly program?: string;
  /** Without it, the agent serves no secrets. */
  readonly vault?: AgentVault;
}

export interface AgentVault {
  readonly folder: string;
  readonly masterKey: string;
}

export interface AgentProcess {
  readonly url: string;
  cpuSeconds(): number;
  peakMb(): number;
  /** Resident now. */
  residentMb(): number;
  stop(): Promise<void>;
}

export const ownProgram = "bin/krane";
/** Jiffies of /proc are hundredths of a second on every Linux that Node runs on. */
const jiffiesPerSecond = 100;
const startLimitMs = 30_000;
const lastWordsMax = 2_000;

/** Resolves when the agent reports that it has started. */
export async function startAgent(
  options: AgentOptions,
  onEnd: (reason: Error) => void,
  signal: AbortSignal,
): Promise<AgentProcess> {
  const folder = await mkdtemp(join(tmpdir(), "krane-bench-"));
  const rpcPort = await freePort();
  const configPath = join(folder, "krane.toml");
  await writeFile(configPath, configOf(options, rpcPort), { mode: 0o600 });
  const { program = ownProgram, vault } = options;
  const child = spawn(process.execPath, [...nodeFlags, program, "agent", "--config", configPath], {
    stdio: ["ignore", "pipe", "pipe"],
    // Other versions set what they need themselves, if anything.
    env: {
      PATH: process.env["PATH"],
      ...(program === ownProgram && nodeEnvironment),
      ...(vault && { UNKEY_VAULT_MASTER_KEYS: vault.masterKey, UNKEY_VAULT_FILE_PATH: vault.folder }),
    },
  });
  const kill = () => void child.kill("SIGKILL");
  // A second Ctrl-C ends this process with no other clean-up.
  process.once("exit", kill);
  signal.addEventListener("abort", kill, { once: true });
  // Kept apart: an agent that crashes writes the error first, and then the log lines that it had gathered.
  const log = lastWordsOf(child.stdout);
  const complaint = lastWordsOf(child.stderr);
  let stopping = false;
  const exited = once(child, "close").then(([code, killedBy]) => {
    if (!stopping) onEnd(new Error(`the agent ended (${killedBy ?? code}): ${complaint()}\n${log()}`));
  });
  const stop = async () => {
    stopping = true;
    child.kill("SIGTERM");
    await exited;
    process.removeListener("exit", kill);
    signal.removeEventListener("abort", kill);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await eventually("the agent has started", () => checkStarted(rpcPort), {
      deadlineMs: startLimitMs,
      signal,
    });
  } catch (error) {
    kill();
    await stop();
    throw new Error(`the agent did not start: ${complaint()}\n${log()}`, { cause: error });
  }
  const pid = child.pid ?? 0;
  return {
    url: `http://127.0.0.1:${rpcPort}`,
    cpuSeconds: () => cpuSecondsOf(pid),
    peakMb: () => memoryMbOf(pid, "VmHWM"),
    residentMb: () => memoryMbOf(pid, "VmRSS"),
    stop,
  };
}

function lastWordsOf(output: Readable): () => string {
  let words = "";
  output.setEncoding("utf8").on("data", (text: string) => {
    words = (words + text).slice(-lastWordsMax);
  });
  return () => words;
}

function configOf(
  { region, controlUrl, controlToken, kubeconfigPath, workers }: AgentOptions,
  rpcPort: number,
) {
  return `region = "${region}"
rpc_port = ${rpcPort}
[control]
url = "${controlUrl}"
token = "${controlToken}"
[kubernetes]
kubeconfig = "${kubeconfigPath}"
${workers === undefined ? "" : `[reconcile]\nworkers = ${workers}\n`}`;
}

async function checkStarted(port: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/health/startup`);
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`it returned ${answer.status}`);
}

// Synchronous, so that the figure belongs to the moment of the call.
function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The program's name comes second, in parentheses, and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / jiffiesPerSecond;
}

function memoryMbOf(pid: number, line: "VmHWM" | "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${line}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
}
