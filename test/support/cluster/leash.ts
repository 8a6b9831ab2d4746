// Ties processes and a folder to the life of the process that starts them.
//
// Each component runs under a small shell whose standard input is a pipe from
// here. However this process ends, SIGKILL included, the kernel closes the pipe;
// the shell reads the end of file and stops the component. A janitor does the
// same for the folder: the pipe it reads is also held by every component, so it
// removes the folder after the last of them has gone, never under their feet.
//
// All of them get a session of their own: Ctrl-C reaches the starter alone, and
// the order of stopping stays its decision.

import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Writable } from "node:stream";

export interface LeashedCommand {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Absent: the output goes where that of this process goes. */
  readonly logPath?: string;
}

export interface Leashed {
  readonly name: string;
  /** Empty if it has none. */
  readonly logPath: string;
  /** Resolves when the component is gone, with how it ended. Never rejects. */
  readonly ended: Promise<string>;
  /** Has the component stopped (TERM, then KILL after 1 s) and waits for its end. */
  release(): Promise<void>;
}

export interface Kennel {
  start(command: LeashedCommand): Leashed;
  /** Waits until every component is gone and the folder is removed. */
  close(): Promise<void>;
}

// The shell waits for the component; a second one, in the background, for the
// end of the pipe. Descriptor 3 is the janitor's pipe, kept open on purpose. The
// second between TERM and KILL is short because nothing is worth saving here.
const leashScript = `
exec 4<&0 </dev/null
"$@" 4<&- &
component=$!
# The shell would write "Killed" where the component writes.
exec 2>/dev/null
(
  while read -r _ <&4; do :; done
  kill -TERM "$component" 2>/dev/null
  tries=10
  while [ "$tries" -gt 0 ] && kill -0 "$component" 2>/dev/null; do
    sleep 0.1
    tries=$((tries - 1))
  done
  kill -KILL "$component" 2>/dev/null
) >/dev/null 2>&1 &
watcher=$!
wait "$component"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
`;

// Control groups are empty folders as soon as their processes are gone, which the kernel may still be ending.
const janitorScript = `
while read -r _; do :; done
rm -rf -- "$1"
[ "$#" -gt 1 ] || exit 0
tries=300
while [ "$tries" -gt 0 ]; do
  find /sys/fs/cgroup -depth -type d -path "*/$2*" -exec rmdir {} + 2>/dev/null
  [ -n "$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$2")" ] || exit 0
  sleep 0.1
  tries=$((tries - 1))
done
`;

/**
 * From here on `dir` is removed when this process and all it starts in the kennel are gone; so are the control groups
 * of that name, if one is given.
 */
export function openKennel(dir: string, cgroup?: string): Kennel {
  const names = cgroup === undefined ? [dir] : [dir, cgroup];
  const janitor = spawnShell(janitorScript, ["krane-janitor", ...names], {
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  const janitorEnded = endOf(janitor);
  const members: Leashed[] = [];
  return {
    start(command) {
      const member = startLeashed(command, inputOf(janitor));
      members.push(member);
      return member;
    },
    async close() {
      await Promise.all(members.map((member) => member.release()));
      inputOf(janitor).end();
      await janitorEnded;
    },
  };
}

function startLeashed(command: LeashedCommand, lifeline: Writable): Leashed {
  const log = command.logPath === undefined ? undefined : openSync(command.logPath, "a");
  const child = spawnShell(leashScript, [`krane-${command.name}`, command.file, ...command.args], {
    cwd: command.cwd,
    env: command.env,
    stdio: ["pipe", log ?? "inherit", log ?? "inherit", lifeline],
  });
  if (log !== undefined) closeSync(log);
  const ended = endOf(child);
  return {
    name: command.name,
    logPath: command.logPath ?? "",
    ended,
    async release() {
      inputOf(child).end();
      await ended;
    },
  };
}

function spawnShell(script: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn("/bin/sh", ["-c", script, ...args], { ...options, detached: true });
  // The shells never read what is written, so the only error here is a pipe
  // whose reader has ended, and that is reported by the end of the process.
  child.stdin?.on("error", () => undefined);
  return child;
}

function inputOf(child: ChildProcess): Writable {
  if (child.stdin === null) {
    throw new Error("a leash needs its pipe");
  }
  return child.stdin;
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(`could not start: ${error.message}`));
    child.once("exit", (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
}
