// A PostgreSQL for krane's servers in pods, on the node's address: passwords, and a database whose owner is no
// superuser. It ends with the box.

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFile, chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { findPostgresBinaries, linkLibraries } from "../../../src/server/embedded/binaries.ts";
import { findAccount } from "../../../src/server/embedded/data-folder.ts";
import { eventually } from "../eventually.ts";

/** Returns the URL for krane's servers. */
export async function startPostgres(dir: string, address: string): Promise<string> {
  const account = await findAccount(process.getuid?.());
  const data = join(dir, "data");
  const passwordFile = join(dir, "password");
  const [superPassword, password] = [newPassword(), newPassword()];
  const binaries = await findPostgresBinaries(undefined);
  await mkdir(dir, { recursive: true });
  const env = { LC_ALL: "C", ...(await linkLibraries(binaries, join(dir, "lib"))) };
  await writeFile(passwordFile, `${superPassword}\n`, { mode: 0o600 });
  if (account !== undefined)
    for (const path of [dir, passwordFile]) await chown(path, account.uid, account.gid);
  const options = { ...account, cwd: dir, env };
  const access = ["--username=postgres", "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
  await promisify(execFile)(
    binaries.initdb,
    ["-D", data, ...access, "--encoding=UTF8", "--locale=C"],
    options,
  );
  await appendFile(join(data, "pg_hba.conf"), "host all all 0.0.0.0/0 scram-sha-256\n");
  const settings = [`listen_addresses=${address}`, "fsync=off", "max_connections=200"];
  spawn(binaries.postgres, ["-D", data, "-k", dir, ...settings.flatMap((each) => ["-c", each])], {
    ...options,
    stdio: "ignore",
  });
  await eventually("PostgreSQL answers", async () => {
    const client = new Client({
      host: address,
      user: "postgres",
      password: superPassword,
      database: "postgres",
    });
    await client.connect();
    try {
      await client.query(`create role krane login password '${password}'`);
      await client.query("create database krane owner krane");
    } finally {
      await client.end();
    }
  });
  return `postgres://krane:${password}@${address}:5432/krane`;
}

function newPassword(): string {
  return randomBytes(18).toString("base64url");
}
