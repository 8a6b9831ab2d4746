// Finds a program that some tests need and that Debian has. A machine without it passes without these tests, with one loud line; in
// CI, as root, its package is installed, and a skip is a failure.
import { access } from "node:fs/promises";
import { join } from "node:path";
import { installPackages } from "./node/machine.ts";

export interface DebianProgram {
  /** How people call it. */
  readonly title: string;
  readonly packageName: string;
  /** The first that is found is taken. */
  readonly names: readonly string[];
}

export type FoundProgram =
  | { readonly kind: "found"; readonly path: string }
  /** What is missing and what to do, on one line. `isFatal` in CI. */
  | { readonly kind: "missing"; readonly what: string; readonly isFatal: boolean };

export async function findDebianProgram({ title, packageName, names }: DebianProgram): Promise<FoundProgram> {
  const found = await findOnPath(names);
  if (found !== undefined) return { kind: "found", path: found };
  const isCi = process.env["CI"] === "true";
  const what = `${title} is missing; install it: apt-get install --yes --no-install-recommends ${packageName}`;
  if (!isCi || process.getuid?.() !== 0) return { kind: "missing", what, isFatal: isCi };
  console.error(`installing ${packageName}`);
  try {
    await installPackages([packageName]);
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim().split("\n").at(-1) : String(error);
    return { kind: "missing", what: `${what} (tried: ${reason})`, isFatal: true };
  }
  const installed = await findOnPath(names);
  return installed === undefined
    ? { kind: "missing", what, isFatal: true }
    : { kind: "found", path: installed };
}

async function findOnPath(names: readonly string[]): Promise<string | undefined> {
  const places = (process.env["PATH"] ?? "")
    .split(":")
    .flatMap((folder) => names.map((name) => join(folder, name)));
  for (const place of places) {
    const isThere = await access(place).then(
      () => true,
      () => false,
    );
    if (isThere) return place;
  }
  return undefined;
}
