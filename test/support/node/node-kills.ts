// Kills parts of krane and of the node with SIGKILL, as a crash would end them. Something else starts them again: the kubelet
// its containers, the node its own parts.

import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { type Random, uniform } from "../../../src/concurrency/random.ts";

export const killable = ["agent", "server", "containerd", "kubelet"] as const;
export type Killable = (typeof killable)[number];

/** Resolves with how many processes it killed; from a test file on the node, which sees those in containers too. */
export async function killPart(part: Killable): Promise<number> {
  return (await processesOf(part)).filter(kill).length;
}

/** Kills one of them, and resolves with the name of its pod; with undefined if none runs. */
export async function killOne(part: "agent" | "server", random: Random): Promise<string | undefined> {
  const running = await processesOf(part);
  const pid = running[Math.floor(uniform(random, 0, running.length))];
  if (pid === undefined) return undefined;
  // In a container, this is the name of the pod.
  const name = await readFile(`/proc/${pid}/root/etc/hostname`, "utf8").catch(() => "");
  return kill(pid) ? name.trim() : undefined;
}

async function processesOf(part: Killable): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const command = (await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "")).split("\0");
    if (isPart(command, part)) found.push(Number(name));
  }
  return found;
}

function isPart(command: readonly string[], part: Killable): boolean {
  if (part === "containerd" || part === "kubelet") return basename(command[0] ?? "") === part;
  const program = command.findIndex((each) => basename(each) === "krane.mjs");
  return program >= 0 && command[program + 1] === part;
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}
