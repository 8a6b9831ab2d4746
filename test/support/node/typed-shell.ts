// A shell that a person types into: what one line sets, the next ones see, and programs in the background keep running.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";

export interface TypedShell {
  /** Resolves with what the lines printed; rejects if one of them fails. */
  type(lines: string): Promise<string>;
  /** Ends it, and what it runs in the background. */
  close(): Promise<void>;
}

export interface ShellOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

export function openTypedShell({ cwd, env }: ShellOptions): TypedShell {
  // A group of its own, so that programs in the background can be ended with it.
  const shell = spawn("bash", ["-eu", "-o", "pipefail"], { cwd, env, detached: true });
  const closed = new Promise<void>((resolve) => shell.once("close", () => resolve()));
  return {
    type: (lines) => typeInto(shell, lines),
    async close() {
      try {
        if (shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
      } catch (error) {
        // Nothing of it is left.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
      await closed;
    },
  };
}

function typeInto(shell: ChildProcessWithoutNullStreams, lines: string): Promise<string> {
  const end = randomUUID();
  return new Promise((resolve, reject) => {
    if (shell.exitCode !== null) throw new Error("the shell has ended");
    let [printed, complaints] = ["", ""];
    const onOutput = (part: Buffer) => {
      printed += part;
      const at = printed.indexOf(end);
      if (at >= 0) settle(() => resolve(printed.slice(0, at)));
    };
    const onComplaint = (part: Buffer) => {
      complaints += part;
    };
    // Its streams stay open as long as a program in the background has them.
    const onExit = () =>
      settle(() => reject(new Error(`the shell ended at:\n${lines}\n${printed}\n${complaints}`)));
    const settle = (act: () => void) => {
      shell.stdout.off("data", onOutput);
      shell.stderr.off("data", onComplaint);
      shell.off("exit", onExit);
      act();
    };
    shell.stdout.on("data", onOutput);
    shell.stderr.on("data", onComplaint);
    shell.once("exit", onExit);
    shell.stdin.write(`${lines}\nprintf %s ${end}\n`);
  });
}
