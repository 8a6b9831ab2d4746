// What processes of `bin/krane server` on one database are started with, and the memory that they use.
import type { ChildProcess } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import type { StoreAdmin } from "../../test/support/store-admin.ts";
import { databaseUrl } from "../server-process.ts";

export interface ServerPlace {
  readonly admin: StoreAdmin;
  readonly database: ClientConfig;
  /** Of the files that the servers read. */
  readonly folder: string;
}

export const serverFiles = { "database-url-file": "database.url", "agent-tokens-file": "tokens" };

/** `tokens`: by region. */
export async function writeServerFiles(
  folder: string,
  database: ClientConfig,
  tokens: ReadonlyMap<string, string>,
): Promise<void> {
  const lines = [...tokens].map(([region, token]) => `${region} ${token}\n`);
  await writeFile(join(folder, "database.url"), databaseUrl(database), { mode: 0o600 });
  await writeFile(join(folder, "tokens"), lines.join(""), { mode: 0o600 });
}

/** What is resident now, in all of them. */
export async function residentMb(children: readonly ChildProcess[]): Promise<number> {
  let kilobytes = 0;
  for (const { pid } of children)
    kilobytes += Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]);
  return kilobytes / 1024;
}
