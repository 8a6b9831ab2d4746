// Builds container images with buildah, in a folder of its own: no daemon, no registry, nothing of the user's images.
// Files of all layers are copied (`vfs`), which works on every file system. Without root, buildah and mmdebstrap run as root of a
// user namespace.

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { requireDebianTools, runDebianTool } from "./debian-tool.ts";

export interface ImageBuild {
  readonly tag: string;
  readonly dockerfile: string;
  readonly context: string;
  /** More arguments of `buildah build`. */
  readonly args?: readonly string[];
}

export interface ImageStore {
  build(image: ImageBuild): Promise<void>;
  /** Writes an image as an OCI archive, complete or not at all. */
  save(tag: string, archive: string): Promise<void>;
  /** Takes an image from an OCI archive. */
  load(archive: string, tag: string): Promise<void>;
}

const run = promisify(execFile);
const asRootOfNamespace = ["--user", "--map-auto", "--map-root-user"];
const isRoot = process.getuid?.() === 0;

/** An empty store, until the task is over. */
export async function withImageStore<T>(
  task: (store: ImageStore) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  await requireImageTools();
  const dir = await mkdtemp(join(tmpdir(), "krane-images-"));
  try {
    return await task(openImageStore(dir, signal));
  } finally {
    // A layer has folders that only root may change, or root of the user namespace.
    if (!isRoot) await run("unshare", [...asRootOfNamespace, "rm", "-rf", "--", dir]);
    await rm(dir, { recursive: true, force: true });
  }
}

/** Throws if this user cannot build images, with the command that changes that. */
export async function requireImageTools(): Promise<void> {
  await requireDebianTools(["buildah", "mmdebstrap"]);
  if (!isRoot) await requireUserNamespace();
}

/** Without it, buildah and mmdebstrap fail with messages that do not say what is missing. */
async function requireUserNamespace(): Promise<void> {
  try {
    await run("unshare", [...asRootOfNamespace, "true"]);
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).trim().split("\n").at(-1);
    const { username } = userInfo();
    const range = "100000-165535";
    const remedy = `apt-get install --yes uidmap && usermod --add-subuids ${range} --add-subgids ${range} ${username}`;
    throw new Error(
      `images are built as root, or in a user namespace, which ${username} cannot create (${reason}); run as root: ${remedy}`,
      { cause: error },
    );
  }
}

function openImageStore(dir: string, signal: AbortSignal): ImageStore {
  const storage = ["--root", join(dir, "root"), "--runroot", join(dir, "run"), "--storage-driver", "vfs"];
  const buildah = (...args: readonly string[]) => runDebianTool("buildah", [...storage, ...args], signal);
  return {
    async build({ tag, dockerfile, context, args = [] }) {
      const what = ["--isolation", "chroot", "--pull-never", "--quiet", "--file", dockerfile, "--tag", tag];
      await buildah("build", ...what, ...args, context);
    },
    async save(tag, archive) {
      const unfinished = `${archive}.${process.pid}`;
      await mkdir(dirname(archive), { recursive: true });
      try {
        await buildah("push", "--quiet", tag, `oci-archive:${unfinished}:${tag}`);
        await rename(unfinished, archive);
      } finally {
        await rm(unfinished, { force: true });
      }
    },
    async load(archive, tag) {
      const id = (await buildah("pull", "--quiet", `oci-archive:${archive}`)).trim();
      await buildah("tag", id, tag);
    },
  };
}
