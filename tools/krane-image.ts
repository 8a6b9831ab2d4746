// Builds krane's image from deploy/image/Dockerfile with buildah, on the stand-in base.

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
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

/** bin/krane and .cache/agent must be there already: `make build` writes them. The store must have the base of that architecture. */
export async function buildKraneImage(
  store: ImageStore,
  architecture: Architecture = ownArchitecture,
): Promise<void> {
  const { tag, base } = await describeKraneImage();
  const ignored = ["--ignorefile", join(folder, "Dockerfile.dockerignore")];
  const labels = { version: tag.split(":").at(-1), revision: await loadRevision() };
  const labelled = Object.entries(labels).flatMap(([name, value]) => [
    "--label",
    `org.opencontainers.image.${name}=${value}`,
  ]);
  await store.build({
    tag,
    dockerfile: join(folder, "Dockerfile"),
    context: root,
    args: [...platformOf(architecture), ...ignored, ...labelled, "--build-arg", `BASE=${base}`],
  });
}

/** The commit that the program was built from, as the program says. */
async function loadRevision(): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, "bin/krane"), "--version"]);
  const revision = /^krane \S+ \((\S+), /.exec(stdout)?.[1];
  if (revision === undefined) throw new Error(`bin/krane does not say its revision: ${stdout.trim()}`);
  return revision;
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
