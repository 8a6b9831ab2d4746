// SHA256SUMS, as `sha256sum --check` reads it.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

export const checksumsName = "SHA256SUMS";

export async function writeChecksums(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name !== checksumsName).sort();
  const lines: string[] = [];
  for (const name of names) lines.push(`${await sha256(join(folder, name))}  ${name}\n`);
  await writeFile(join(folder, checksumsName), lines.join(""));
}

/** Throws unless the list names every file of the folder, each with its content. */
export async function verifyChecksums(folder: string): Promise<void> {
  const text = await readFile(join(folder, checksumsName), "utf8");
  const listed = new Map(
    text
      .trimEnd()
      .split("\n")
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );
  const names = (await readdir(folder)).filter((name) => name !== checksumsName);
  const unlisted = names.filter((name) => !listed.has(name));
  if (unlisted.length > 0) throw new Error(`not in ${checksumsName}: ${unlisted.join(", ")}`);
  for (const [name, expected] of listed)
    if ((await sha256(join(folder, name))) !== expected) throw new Error(`${name}: wrong checksum`);
}

async function sha256(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
