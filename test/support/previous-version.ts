// The version before this one, built from this repository's history: upgrade tests run it before and after the present
// one. If the history is not there, the reason is returned as a value.
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { fillFolder, missingFiles } from "../../tools/binary-folder.ts";
import { exportTree } from "../../tools/source-tree.ts";
import { projectRoot } from "./project-files.ts";

/**
 * The last commit whose objects carry no seal. Change it after a release to the commit that was released, in a commit
 * of its own. Only a version that users really upgrade from belongs here, and its tools/bundle.ts must run on this Node.
 */
const previousCommit = "060ed82029a5945356196889c6721976f64dc59d";

export type PreviousVersion =
  | {
      readonly kind: "ready";
      readonly program: string;
      /** Its deploy/manifests. */
      readonly manifestsDir: string;
    }
  /** What is missing and how to get it, on one line. */
  | { readonly kind: "missing"; readonly what: string };

const run = promisify(execFile);

/** Built once into the cache, which takes some seconds. `commit` is a full hash. */
export async function resolvePreviousVersion(
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  commit = previousCommit,
): Promise<PreviousVersion> {
  const cacheRoot = join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "krane/previous");
  const targetDir = join(cacheRoot, commit.slice(0, 12));
  const ready = {
    kind: "ready",
    program: join(targetDir, "krane"),
    manifestsDir: join(targetDir, "deploy/manifests"),
  } as const;
  if ((await missingFiles(targetDir, ["krane"])).length === 0) return ready;
  const what = await historyObstacle(commit, signal);
  if (what !== undefined) return { kind: "missing", what };
  const report = (line: string) => console.error(line);
  const announcement = `building krane ${commit.slice(0, 12)} from git history, once`;
  const build = (target: string, stop: AbortSignal) => buildPrevious(commit, target, stop);
  const steps = [{ file: "krane", run: build }];
  await mkdir(cacheRoot, { recursive: true });
  await fillFolder({ name: "previous version", targetDir, announcement, steps, report }, signal);
  return ready;
}

/**
 * The previous version for upgrade tests, or why they are skipped, said loudly. Throws with CI=true: there a skip would
 * hide that upgrades are no longer tested.
 */
export async function previousVersionOrSkip(env: NodeJS.ProcessEnv): Promise<PreviousVersion> {
  const version = await resolvePreviousVersion(env, new AbortController().signal);
  if (version.kind === "ready") return version;
  if (env["CI"] === "true") throw new Error(`UPGRADE TESTS FAILED, not run: ${version.what}`);
  console.error(`UPGRADE TESTS SKIPPED: ${version.what}`);
  return version;
}

async function historyObstacle(commit: string, signal: AbortSignal): Promise<string | undefined> {
  const git = (...args: string[]) => run("git", args, { cwd: projectRoot, signal });
  const short = commit.slice(0, 12);
  try {
    await git("cat-file", "-e", `${commit}^{commit}`);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    const shallow = await git("rev-parse", "--is-shallow-repository").catch(() => undefined);
    if (shallow === undefined) return `no git history, and commit ${short} is needed: use a git clone`;
    if (shallow.stdout.trim() === "true")
      return `commit ${short} is not in this shallow clone: git fetch --unshallow`;
    return `commit ${short} is not in this clone (${firstLine(error)}): git fetch origin ${commit}`;
  }
}

/** Writes the program to `target`, and its deploy/ beside it. */
async function buildPrevious(commit: string, target: string, signal: AbortSignal): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "krane-previous-"));
  try {
    const tree = join(folder, "tree");
    await exportTree(projectRoot, commit, tree, signal);
    const bundle = ["--import", "tsx", "tools/bundle.ts", "program", target];
    await run(process.execPath, bundle, { cwd: tree, signal });
    await cp(join(tree, "deploy"), join(dirname(target), "deploy"), { recursive: true });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function firstLine(error: unknown): string {
  const text = error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
  return text.trim().split("\n")[0] ?? "";
}
