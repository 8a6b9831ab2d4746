// The images of a real node, as OCI archives: the one that holds a pod's namespaces, krane's, and those of tests. Built
// once for each content, into .cache/image.

import { createHash } from "node:crypto";
import { access, copyFile, cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { findPostgresBinaries } from "../../../src/server/embedded/binaries.ts";
import { extractPackages } from "../../../tools/debian-tool.ts";
import { type BaseOptions, baseSuite, resolveStandInBase } from "../../../tools/image-base.ts";
import { type ImageBuild, type ImageStore, withImageStore } from "../../../tools/image-store.ts";
import { buildKraneImage, describeKraneImage, withBaseImage } from "../../../tools/krane-image.ts";
import { projectRoot } from "../project-files.ts";
import { installedVariable } from "./installed-krane.ts";
import { sandboxImage } from "./node-components.ts";

/** A tenant's program that answers HTTP; its folder is test/node/images/app. */
export const appImage = "registry.example/app:1";

/** The same program with a shell, curl, awk, wget and kill, started by examples/clients/decrypt-env. */
export const shellAppImage = "registry.example/shell-app:1";

/** A stand-in for the platform's sentinel; its folder is test/node/images/sentinel. */
export const sentinelImage = "registry.example/sentinel:1";

/** Stand-ins for public images, under their names: what examples/hello.yaml runs, its next version, and the chart's PostgreSQL. */
export const whoamiImages = ["docker.io/traefik/whoami:v1.10", "docker.io/traefik/whoami:v1.11"] as const;
const postgresImage = "docker.io/library/postgres:17";

const shellPackages = ["coreutils", "curl", "dash", "mawk", "procps", "wget"];

const postgresPackages = ["base-files", "coreutils", "dash", "libc6", "libgcc-s1", "libstdc++6"];

interface Recipe {
  readonly tag: string;
  /** Its content by these files decides whether it is built again. */
  readonly files: readonly string[];
  /** Others are made from one another, and built together. */
  readonly isAlone?: boolean;
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
  const installed = options.env[installedVariable];
  if (installed !== undefined) return installedImages(installed, nodeDir, signal);
  const recipes = await createRecipes(nodeDir, options, signal);
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
      const isTogether = recipes.some(({ isAlone = false }, index) => !isAlone && missing[index]);
      for (const [index, { tag, build, isAlone = false }] of recipes.entries()) {
        if (isAlone ? !missing[index] : !isTogether) continue;
        await build(store);
        await store.save(tag, archives[index] ?? "");
        await removeOlder(tag, archives[index] ?? "");
      }
    };
    await withBaseImage(options, buildAll, signal);
  }
  return archives;
}

/** In the order in which they are built: some are made from others. */
async function createRecipes(
  nodeDir: string,
  options: BaseOptions,
  signal: AbortSignal,
): Promise<readonly Recipe[]> {
  const krane = await describeKraneImage();
  const base = await resolveStandInBase(krane.base, options, signal);
  const program = [join(projectRoot, "bin/krane"), ...(await filesOf(join(projectRoot, ".cache/agent")))];
  program.push(...(await filesOf(join(projectRoot, "deploy/image"))));
  const appFiles = [base, ...program, ...(await filesOf(join(images, "app")))];
  const shellAppFiles = [...appFiles, decryptEnv, join(images, "shell-app/Dockerfile")];
  const postgresNative = await findPostgresFolder();
  return [
    {
      tag: sandboxImage,
      files: [join(nodeDir, "pause")],
      isAlone: true,
      build: (store) => buildPause(store, nodeDir),
    },
    { tag: krane.tag, files: [base, ...program], build: buildKraneImage },
    {
      tag: appImage,
      files: appFiles,
      build: (store) => store.build(inFolder(appImage, "app")),
    },
    {
      tag: shellAppImage,
      files: shellAppFiles,
      build: (store) => buildShellApp(store, signal),
    },
    ...whoamiImages.map((tag) => ({
      tag,
      files: [...appFiles, join(images, "whoami/Dockerfile")],
      build: (store: ImageStore) => store.build(inFolder(tag, "whoami")),
    })),
    {
      tag: sentinelImage,
      files: [...appFiles, ...(await filesOf(join(images, "sentinel")))],
      build: (store) => store.build(inFolder(sentinelImage, "sentinel")),
    },
    {
      tag: postgresImage,
      files: [...(await filesOf(join(images, "postgres"))), join(postgresNative, "../package.json")],
      isAlone: true,
      build: (store) => buildPostgres(store, postgresNative, signal),
    },
  ];
}

/** Of krane's, the one that was built before. Tests that use others do not run with it. */
async function installedImages(
  installed: string,
  nodeDir: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const pause = join(installed, "pause.tar");
  const build = async (store: ImageStore) => {
    await buildPause(store, nodeDir);
    await store.save(sandboxImage, pause);
  };
  await withImageStore(build, signal);
  return [pause, join(installed, "krane.tar")];
}

async function archiveOf({ tag, files }: Recipe): Promise<string> {
  const hash = createHash("sha256").update([tag, baseSuite, ...shellPackages, ...postgresPackages].join(" "));
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

function inFolder(tag: string, folder: string): ImageBuild {
  return { tag, dockerfile: join(images, folder, "Dockerfile"), context: join(images, folder) };
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

/** The programs that `krane server` starts where it is given no database, from an npm package. */
async function findPostgresFolder(): Promise<string> {
  return dirname(dirname((await findPostgresBinaries(undefined)).postgres));
}

async function buildPostgres(store: ImageStore, native: string, signal: AbortSignal): Promise<void> {
  const context = await mkdtemp(join(tmpdir(), "krane-postgres-image-"));
  try {
    await cp(join(images, "postgres"), context, { recursive: true });
    await extractPackages(postgresPackages, baseSuite, join(context, "system.tar"), signal);
    await cp(native, join(context, "native"), { recursive: true });
    const { libraryLinks } = await findPostgresBinaries(undefined);
    for (const [name, file] of libraryLinks)
      await symlink(basename(file), join(context, "native/lib", name)).catch(ignoreExisting);
    await store.build({ tag: postgresImage, dockerfile: join(context, "Dockerfile"), context });
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

/** Where install scripts may run, the package makes the links itself. */
function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}

async function filesOf(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).sort().map((name) => join(folder, name));
}
