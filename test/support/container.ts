// A place as a container has it: a root file system that holds Node, its libraries and krane's bundle, mounted
// read-only, without a shell or any other program; the user is nobody in particular. It needs the rights to mount and
// to change the root, which a test run need not have.
import { execFile } from "node:child_process";
import { chmod, chown, copyFile, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { bundleAgent } from "../../tools/agent-parts.ts";
import { nodeEnvironment, nodeFlags } from "../../tools/bundle.ts";
import { buildKrane, type KraneProcess, startKrane } from "./krane-process.ts";
import { projectRoot } from "./project-files.ts";

const run = promisify(execFile);
export const containerUser = 65532;
/** Node and the program, where the image has them. */
export const containerProgram = ["/nodejs/bin/node", "/krane/krane.mjs"] as const;
const [node, program] = containerProgram;

export interface ContainerImage {
  /** Puts files in, readable by the user, and starts krane. Folders in `writable` can be written to. */
  start(t: TestContext, options: ContainerOptions): Promise<KraneProcess>;
  remove(): Promise<void>;
}

export interface ContainerOptions {
  readonly args: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
  readonly writable?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

// The shell is the machine's own, and is outside when krane runs: chroot replaces it. The folders that may be written
// to are mounts of their own, so that the root being read-only does not bind them.
const enter = `set -e
root=$1; user=$2; shift 2
mount --bind "$root" "$root.mounted"
for folder in /dev /proc; do mount --bind "$folder" "$root.mounted$folder"; done
for folder in $(cat "$root.writable"); do mount --bind "$root$folder" "$root.mounted$folder"; done
mount -o remount,ro,bind "$root.mounted"
exec chroot --userspec="$user:$user" "$root.mounted" ${[node, ...nodeFlags, program].join(" ")} "$@"`;

/** Undefined, or why this machine cannot make such a place, as one line. */
export async function containerObstacle(): Promise<string | undefined> {
  if (process.platform !== "linux") return "containers are made on Linux only";
  if (process.getuid?.() !== 0) return "it takes root to change the root of a process";
  return run("unshare", ["--mount", "--propagation", "private", "true"]).then(
    () => undefined,
    () => "this machine does not allow a process to mount anything",
  );
}

export async function buildContainerImage(): Promise<ContainerImage> {
  const folder = await mkdtemp(join(tmpdir(), "krane-image-"));
  await chmod(folder, 0o755);
  const image = join(folder, "image");
  const krane = await buildKrane();
  for (const name of ["krane", "dev", "proc"]) await mkdir(join(image, name), { recursive: true });
  await copyFile(krane.program, join(image, "krane/program.mjs"));
  await copyFile(join(projectRoot, "deploy/image/krane.mjs"), join(image, program));
  await bundleAgent(join(image, "krane/agent"));
  await krane.remove();
  await copyProgram(process.execPath, node, image);
  return {
    start: (t, options) => startContainer(t, folder, image, options),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** With the libraries that it is linked to, where it looks for them. */
async function copyProgram(program: string, path: string, image: string): Promise<void> {
  const { stdout } = await run("ldd", [program]);
  const libraries = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, file = ""]) => file);
  for (const [from, to] of [[program, path], ...libraries.map((file) => [file, file])] as [
    string,
    string,
  ][]) {
    await mkdir(dirname(join(image, to)), { recursive: true });
    await copyFile(await realpath(from), join(image, to));
  }
}

async function startContainer(
  t: TestContext,
  folder: string,
  image: string,
  { args, files = {}, writable = [], env = {} }: ContainerOptions,
): Promise<KraneProcess> {
  const root = await mkdtemp(join(folder, "root-"));
  await chmod(root, 0o755);
  await run("cp", ["--archive", "--link", `${image}/.`, root]);
  await mkdir(`${root}.mounted`);
  await writeFile(`${root}.writable`, writable.join("\n"));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
    await chown(join(root, path), 0, containerUser);
    await chmod(join(root, path), 0o440);
  }
  for (const path of writable) {
    await mkdir(join(root, path), { recursive: true });
    await chown(join(root, path), containerUser, containerUser);
  }
  const mounting = ["--mount", "--propagation", "private", "/bin/sh", "-c", enter, "sh"];
  return startKrane(t, "/usr/bin/unshare", [...mounting, root, String(containerUser), ...args], {
    ...nodeEnvironment,
    ...env,
  });
}
