// Runs the command of an exec plugin, with limits on its time and output.
import { execFile } from "node:child_process";
import type { RunCommand } from "./credentials.ts";

const outputBytesMax = 2 ** 20;
const timeoutMs = 50_000;

export function createCommandRunner(baseEnv: Readonly<Record<string, string | undefined>>): RunCommand {
  return ({ command, args, env }, signal) =>
    new Promise((resolve, reject) => {
      const options = {
        env: { ...baseEnv, ...env },
        maxBuffer: outputBytesMax,
        timeout: timeoutMs,
        signal,
        windowsHide: true,
      };
      const child = execFile(command, [...args], options, (error, stdout) => {
        if (error === null) resolve({ exitCode: 0, stdout });
        else if (typeof error.code === "number") resolve({ exitCode: error.code, stdout });
        // Node's error quotes the command line and the output, and both may contain secrets (K7).
        else reject(new Error(error.killed ? `timed out after ${timeoutMs} ms` : String(error.code)));
      });
      // There is no terminal: a plugin that reads stdin must see its end at once.
      child.stdin?.end();
    });
}
