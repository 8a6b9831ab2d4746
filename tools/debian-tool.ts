// Runs a program of a Debian package. If it is missing, the error names the command that installs it.

import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const outputBytesMax = 2 ** 24;

/** The package has the program's name. Resolves with its standard output. */
export async function runDebianTool(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  try {
    const { stdout } = await run(program, args, { signal, maxBuffer: outputBytesMax });
    return stdout;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    const remedy = `apt-get install --yes --no-install-recommends ${program}`;
    throw new Error(`${program} is not installed; install it: ${remedy}`, { cause: error });
  }
}
