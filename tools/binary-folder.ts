// Fills a folder of the cache with binaries, one step after the other.
//
// The folder appears under its final name only when it is complete: everything is made beside it and renamed at the
// end, so a build that was killed never looks finished.

import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withBuildLock } from "./build-lock.ts";

export interface FolderBuild {
  /** Starts every line of progress. */
  readonly name: string;
  readonly targetDir: string;
  /** What is built, and how long it takes the first time. */
  readonly announcement: string;
  readonly steps: readonly FolderStep[];
  readonly report: (line: string) => void;
}

export interface FolderStep {
  /** The file that the step writes. */
  readonly file: string;
  run(target: string, signal: AbortSignal): Promise<void>;
}

const reportEveryMs = 30_000;

export async function fillFolder(build: FolderBuild, signal: AbortSignal): Promise<void> {
  const { name, targetDir, report } = build;
  const files = build.steps.map(({ file }) => file);
  await withBuildLock(
    `${targetDir}.lock`,
    () => report(`${name}: another process is building the same binaries; waiting for it`),
    async () => {
      // The previous holder of the lock may have finished the same build.
      if ((await missingFiles(targetDir, files)).length > 0) {
        await rm(targetDir, { recursive: true, force: true });
        await runSteps(build, files, signal);
      }
    },
    signal,
  );
}

async function runSteps(build: FolderBuild, files: readonly string[], signal: AbortSignal): Promise<void> {
  const { name, targetDir, steps, report } = build;
  await removeAbandonedBuilds(targetDir);
  const workDir = `${targetDir}.building-${process.pid}`;
  report(`${name}: ${build.announcement}`);
  const begun = Date.now();
  try {
    await mkdir(workDir, { recursive: true });
    for (const [index, { file, run }] of steps.entries()) {
      const label = `${name}: [${index + 1}/${steps.length}] ${file}`;
      await timed(label, report, () => run(join(workDir, file), signal));
    }
    await publish(workDir, targetDir, files);
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
  report(`${name}: built in ${secondsSince(begun)} s`);
}

async function timed(
  label: string,
  report: (line: string) => void,
  task: () => Promise<void>,
): Promise<void> {
  const begun = Date.now();
  report(`${label} ...`);
  const ticker = setInterval(() => report(`${label} ... ${secondsSince(begun)} s`), reportEveryMs);
  try {
    await task();
  } finally {
    clearInterval(ticker);
  }
  report(`${label} done in ${secondsSince(begun)} s`);
}

// A second holder of the lock may have filled the target meanwhile; its files are
// equivalent.
async function publish(workDir: string, targetDir: string, files: readonly string[]): Promise<void> {
  try {
    await rename(workDir, targetDir);
  } catch (error) {
    if ((await missingFiles(targetDir, files)).length > 0) {
      throw error;
    }
  }
}

async function removeAbandonedBuilds(targetDir: string): Promise<void> {
  const parent = dirname(targetDir);
  const prefix = `${basename(targetDir)}.building-`;
  for (const name of await readdir(parent)) {
    if (name.startsWith(prefix)) {
      await rm(join(parent, name), { recursive: true, force: true });
    }
  }
}

/** Which of these files a folder lacks. */
export async function missingFiles(dir: string, files: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    files.map((file) =>
      stat(join(dir, file)).then(
        (entry) => entry.isFile(),
        () => false,
      ),
    ),
  );
  return files.filter((_, index) => found[index] !== true);
}

function secondsSince(begun: number): number {
  return Math.round((Date.now() - begun) / 1000);
}
