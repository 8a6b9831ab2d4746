// Builds container images with buildah, in a folder of its own: no daemon, no registry, nothing of the user's images.
// Files of all layers are copied (`vfs`), which works on every file system.

import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runDebianTool } from "./debian-tool.ts";

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
  /** What `buildah inspect` says. */
  inspect(tag: string): Promise<unknown>;
}

export async function openImageStore(dir: string, signal: AbortSignal): Promise<ImageStore> {
  await mkdir(dir, { recursive: true });
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
    async inspect(tag) {
      return JSON.parse(await buildah("inspect", "--type", "image", tag));
    },
  };
}
