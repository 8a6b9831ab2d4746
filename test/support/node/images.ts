// The images of a real node, as OCI archives: the one that holds a pod's namespaces, krane's, and those of tests. Built
// once for each content, into .cache/image.

import { createHash } from "node:crypto";
import { access, copyFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { extractPackages } from "../../../tools/debian-tool.ts";
import { type BaseOptions, baseSuite, resolveStandInBase } from "../../../tools/image-base.ts";
import type { ImageStore } from "../../../tools/image-store.ts";
import { buildKraneImage, describeKraneImage, withBaseImage } from "../../../tools/krane-image.ts";
import { projectRoot } from "../project-files.ts";
import { sandboxImage } from "./node-components.ts";

/** A tenant's program that answers HTTP; its folder is test/node/images/app. */
export const appImage = "registry.example/app:1";

/** The same program with a shell, curl, awk, wget and kill, started by examples/clients/decrypt-env. */
export const shellAppImage = "registry.example/shell-app:1";
const shellPackages = ["coreutils", "curl", "dash", "mawk", "procps", "wget"];

interface Recipe {
  readonly tag: string;
  /** Its content by these files decides whether it is built anew. */
  readonly files: readonly string[];
  build(store: ImageStore): Promise<void>;
}

const images = join(projectRoot, "test/node/images");
const archiveDir = join(projectRoot, ".cache/image");
const decryptEnv = join(projectRoot, "examples/clients/decrypt-env");

export async function resolveNodeImages(
  nodeDir: string,
  options: BaseOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const krane = await describeKraneImage();
  const base = await resolveStandInBase(krane.base, options, signal);
  const program = ["bin/krane", "deploy/image/krane", "deploy/image/Dockerfile"].map((each) =>
    join(projectRoot, each),
  );
  const appFiles = await filesOf(join(images, "app"));
  const recipes: readonly Recipe[] = [
    { tag: sandboxImage, files: [join(nodeDir, "pause")], build: (store) => buildPause(store, nodeDir) },
    { tag: krane.tag, files: [base, ...program], build: buildKraneImage },
    {
      tag: appImage,
      files: [base, ...program, ...appFiles],
      build: (store) =>
        store.build({
          tag: appImage,
          dockerfile: join(images, "app/Dockerfile"),
          context: join(images, "app"),
        }),
    },
    {
      tag: shellAppImage,
      files: [base, ...program, ...appFiles, decryptEnv, join(images, "shell-app/Dockerfile")],
      build: (store) => buildShellApp(store, signal),
    },
  ];
  const archives = await Promise.all(recipes.map(archiveOf));
  const missing = await Promise.all(
    archives.map((archive) =>
      access(archive).then(
        () => false,
        () => true,
      ),
    ),
  );
  if (missing.includes(true)) {
    options.report("node: building the images");
    const buildAll = async (store: ImageStore) => {
      for (const [index, { tag, build }] of recipes.entries()) {
        await build(store);
        await store.save(tag, archives[index] ?? "");
        await removeOlder(tag, archives[index] ?? "");
      }
    };
    await withBaseImage(options, buildAll, signal);
  }
  return archives;
}

async function archiveOf({ tag, files }: Recipe): Promise<string> {
  const hash = createHash("sha256").update([tag, baseSuite, ...shellPackages].join(" "));
  for (const file of files) hash.update(await readFile(file));
  return join(archiveDir, `${fileNameOf(tag)}-${hash.digest("hex").slice(0, 12)}.tar`);
}

async function removeOlder(tag: string, archive: string): Promise<void> {
  for (const name of await readdir(archiveDir)) {
    const path = join(archiveDir, name);
    if (name.startsWith(`${fileNameOf(tag)}-`) && path !== archive) await rm(path, { force: true });
  }
}

function fileNameOf(tag: string): string {
  return (tag.split("/").at(-1) ?? "").replace(":", "-");
}

async function buildPause(store: ImageStore, nodeDir: string): Promise<void> {
  const context = await mkdtemp(join(tmpdir(), "krane-pause-"));
  try {
    await copyFile(join(nodeDir, "pause"), join(context, "pause"));
    const dockerfile = join(context, "Dockerfile");
    await writeFile(dockerfile, 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n');
    await store.build({ tag: sandboxImage, dockerfile, context });
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

async function buildShellApp(store: ImageStore, signal: AbortSignal): Promise<void> {
  const context = await mkdtemp(join(tmpdir(), "krane-shell-app-"));
  try {
    await extractPackages(shellPackages, baseSuite, join(context, "shell.tar"), signal);
    await copyFile(decryptEnv, join(context, "decrypt-env"));
    const dockerfile = join(images, "shell-app/Dockerfile");
    await store.build({ tag: shellAppImage, dockerfile, context });
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

async function filesOf(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).sort().map((name) => join(folder, name));
}
