// Builds krane's image from deploy/image/Dockerfile with buildah, on the stand-in base.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Architecture, ownArchitecture } from "./debian-tool.ts";
import { type BaseOptions, platformOf, resolveStandInBase } from "./image-base.ts";
import { type ImageStore, withImageStore } from "./image-store.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "deploy/image");

export interface KraneImage {
  readonly tag: string;
  /** The base in the Dockerfile, without its digest: the stand-in has another. */
  readonly base: string;
}

export async function describeKraneImage(): Promise<KraneImage> {
  const base = /^ARG BASE=([^@\s]+)@sha256:[0-9a-f]{64}$/m.exec(
    await readFile(join(folder, "Dockerfile"), "utf8"),
  )?.[1];
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    readonly version: string;
  };
  if (base === undefined) throw new Error("deploy/image/Dockerfile has no ARG BASE with a digest");
  return { tag: `registry.example/krane:${version}`, base };
}

/** bin/krane must be there already: `make build` writes it. The store must have the base of that architecture. */
export async function buildKraneImage(
  store: ImageStore,
  architecture: Architecture = ownArchitecture,
): Promise<void> {
  const { tag, base } = await describeKraneImage();
  const ignored = ["--ignorefile", join(folder, "Dockerfile.dockerignore")];
  const labels = ["--label", `org.opencontainers.image.version=${tag.split(":").at(-1)}`];
  await store.build({
    tag,
    dockerfile: join(folder, "Dockerfile"),
    context: root,
    args: [...platformOf(architecture), ...ignored, ...labels, "--build-arg", `BASE=${base}`],
  });
}

/** A store that has the base, until the task is over. */
export async function withBaseImage<T>(
  options: BaseOptions,
  task: (store: ImageStore) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { base } = await describeKraneImage();
  const archive = await resolveStandInBase(base, options, signal);
  const withBase = async (store: ImageStore) => {
    await store.load(archive, base);
    return task(store);
  };
  return withImageStore(withBase, signal);
}
