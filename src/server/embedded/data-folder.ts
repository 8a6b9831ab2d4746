// Prepares the folder that a server keeps its data in. It is given to the database's account
// and closed to everybody else, so it must not be shared: a folder with foreign files is
// rejected before anything is changed.
import { chmod, chown, lstat, readdir, readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { EmbeddedError } from "./embedded-error.ts";
import { makeFolders } from "./new-folders.ts";

export const homeName = "postgres";
export const newHomePrefix = "postgres.new-";
export const programsPrefix = "postgres-programs-";
export const newProgramsPrefix = "postgres-programs.new-";
export const agentTokensName = "agent-tokens";
export const adminTokensName = "admin-tokens";
export const cliContextName = "cli.toml";

/** The account that runs the database: PostgreSQL refuses to run as root. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

const accountNames = ["postgres", "nobody"];

/** Undefined when this process may run the database itself. */
export async function findAccount(uid: number | undefined): Promise<Account | undefined> {
  if (uid !== 0) return undefined;
  const lines = (await readFile("/etc/passwd", "utf8").catch(() => "")).split("\n");
  const accounts = new Map(
    lines.map((line) => line.split(":")).map(([name, , u, g]) => [name, [u, g]] as const),
  );
  for (const name of accountNames) {
    const [u, g] = accounts.get(name) ?? [];
    if (u !== undefined && g !== undefined) return { uid: Number(u), gid: Number(g) };
  }
  const message =
    "PostgreSQL does not run as root, and there is no account postgres or nobody; run as another user";
  throw new EmbeddedError("data_dir_unusable", message);
}

export async function prepareDataFolder(path: string, account: Account | undefined): Promise<void> {
  try {
    await makeFolders(path);
    if (!(await lstat(path)).isDirectory()) throw unusable(path, "is not a folder");
    const strangers = (await readdir(path)).filter((name) => !isOurs(name));
    if (strangers.length > 0) {
      throw unusable(path, `holds ${strangers[0]}, which is not krane's; choose an empty folder`);
    }
    await chmod(path, 0o700);
    if (account !== undefined) await chown(path, account.uid, account.gid);
  } catch (cause) {
    if (cause instanceof EmbeddedError) throw cause;
    throw unusable(path, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

/** Fails when a parent folder is closed to the account, which programs would report as a missing file. */
export async function checkReachable(path: string, account: Account | undefined): Promise<void> {
  const closed = await findClosedFolder(path, account);
  if (closed === undefined) return;
  const reason = `is not accessible to the database's account, because it may not enter ${closed}`;
  throw new EmbeddedError(
    "data_dir_unusable",
    `${path} ${reason}; use another folder, or do not run as root`,
  );
}

/** The innermost folder above the path that the account may not enter. */
export async function findClosedFolder(
  path: string,
  account: Account | undefined,
): Promise<string | undefined> {
  if (account === undefined) return undefined;
  for (let folder = dirname(resolve(path)); ; folder = dirname(folder)) {
    const { mode, uid, gid } = await stat(folder);
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

function isOurs(name: string): boolean {
  const files = [agentTokensName, adminTokensName, cliContextName];
  const isNamed = [homeName, "lost+found", ...files, ...files.map((file) => `${file}.new`)].includes(name);
  const prefixes = [newHomePrefix, programsPrefix, newProgramsPrefix];
  return isNamed || prefixes.some((prefix) => name.startsWith(prefix));
}

function unusable(path: string, reason: string, cause?: unknown): EmbeddedError {
  return new EmbeddedError("data_dir_unusable", `--data-dir: ${path} ${reason}`, { cause });
}
