// The files of a commit in a folder of their own, with npm packages, so that the commit's own tools can run there.
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Fills `tree`, which must not exist, from the repository in `root`. */
export async function exportTree(
  root: string,
  commit: string,
  tree: string,
  signal: AbortSignal,
): Promise<void> {
  const archive = `${tree}.tar`;
  await mkdir(tree, { recursive: true });
  await run("git", ["archive", "--output", archive, commit], { cwd: root, signal });
  await run("tar", ["-xf", archive, "-C", tree], { signal });
  await rm(archive);
  await installPackages(root, tree, signal);
}

/** Uses the npm packages of `root` if they are the same. */
async function installPackages(root: string, tree: string, signal: AbortSignal): Promise<void> {
  const lockOf = (folder: string) => readFile(join(folder, "package-lock.json"), "utf8");
  if ((await lockOf(tree)) !== (await lockOf(root))) {
    await run("npm", ["ci", "--no-progress", "--ignore-scripts"], { cwd: tree, signal });
    return;
  }
  const installed = join(root, "node_modules");
  await mkdir(join(tree, "node_modules/@krane"), { recursive: true });
  // Packages of the repository itself are those of the tree.
  for (const name of (await readdir(installed)).filter((entry) => entry !== "@krane"))
    await symlink(join(installed, name), join(tree, "node_modules", name));
  for (const name of await readdir(join(tree, "packages")))
    await symlink(join(tree, "packages", name), join(tree, "node_modules/@krane", name));
}
