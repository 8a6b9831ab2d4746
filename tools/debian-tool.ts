// Runs a program of a Debian package. If it is missing, the error names the command that installs it.

import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const outputBytesMax = 2 ** 24;

/** Debian packages could not be downloaded or unpacked: a problem of the machine, not of the pins. */
export class DebianPackagesError extends Error {}

/** As Debian and container images name them. */
export type Architecture = "amd64" | "arm64";

export const ownArchitecture: Architecture = process.arch === "arm64" ? "arm64" : "amd64";

/** Writes the content of packages and of what they depend on as a tar archive. No script of a package is run. */
export function extractPackages(
  packages: readonly string[],
  suite: string,
  archive: string,
  signal: AbortSignal,
): Promise<void> {
  return extractPackagesFor(ownArchitecture, packages, suite, archive, signal);
}

export async function extractPackagesFor(
  architecture: Architecture,
  packages: readonly string[],
  suite: string,
  archive: string,
  signal: AbortSignal,
): Promise<void> {
  const what = [`--architectures=${architecture}`, `--include=${packages.join(",")}`];
  const args = ["--quiet", "--variant=extract", ...what, suite, archive];
  await runDebianTool("mmdebstrap", args, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message.trim().split("\n").at(-1) : String(cause);
    throw new DebianPackagesError(`Debian packages of ${suite} could not be fetched (${reason})`, { cause });
  });
}

/** Throws if one of the programs is missing; the error names the command that installs all that are. */
export async function requireDebianTools(programs: readonly string[]): Promise<void> {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const isThere = (program: string) =>
    Promise.any(folders.map((folder) => access(join(folder, program), constants.X_OK))).then(
      () => true,
      () => false,
    );
  const found = await Promise.all(programs.map(isThere));
  const missing = programs.filter((_, index) => !found[index]);
  if (missing.length > 0) throw missingTools(missing);
}

function missingTools(programs: readonly string[], cause?: unknown): Error {
  const remedy = `apt-get install --yes --no-install-recommends ${programs.join(" ")}`;
  const verb = programs.length === 1 ? "is" : "are";
  return new Error(`${programs.join(" and ")} ${verb} not installed; as root: ${remedy}`, { cause });
}

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
    throw missingTools([program], error);
  }
}
