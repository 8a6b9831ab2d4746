// Which processes there are, by asking the system and not whoever started them.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
}

/** All living children, grandchildren and so on of a process. */
export function descendants(ancestor: number): readonly number[] {
  const table = livingProcesses();
  const found = [ancestor];
  for (const pid of found) {
    found.push(...table.filter((entry) => entry.parent === pid).map((entry) => entry.pid));
  }
  return found.slice(1);
}

/** Those of the given processes that still live. */
export function stillAlive(pids: readonly number[]): readonly number[] {
  const alive = new Set(livingProcesses().map((entry) => entry.pid));
  return pids.filter((pid) => alive.has(pid));
}

// A dead process whose parent has not asked for its exit code stays in the
// table as a zombie; it counts as gone. Slim Linux images have no `ps`.
function livingProcesses(): readonly ProcessEntry[] {
  const rows = process.platform === "linux" ? readProc() : readPs();
  return rows.filter((row) => !row.state.startsWith("Z")).map(({ pid, parent }) => ({ pid, parent }));
}

interface Row extends ProcessEntry {
  readonly state: string;
}

function readProc(): readonly Row[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const text = readFileSync(`/proc/${name}/stat`, "utf8");
        // The name of the program, in parentheses, may itself contain both.
        const [state = "", parent = ""] = text.slice(text.lastIndexOf(")") + 2).split(" ");
        return [{ pid: Number(name), parent: Number(parent), state }];
      } catch {
        return [];
      }
    });
}

function readPs(): readonly Row[] {
  return execFileSync("ps", ["-A", "-o", "pid=,ppid=,state="], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((line) => {
      const [pid, parent, state = ""] = line.trim().split(/\s+/);
      return { pid: Number(pid), parent: Number(parent), state };
    });
}
