// Creates folders one level at a time. mkdir's `recursive` option loops for ever, and cannot be interrupted, if the
// system answers ENOENT for a new folder inside an existing one, as below /proc.
import { lstat, mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Creates the folder and its missing parents, accessible to their owner only. */
export async function makeFolders(path: string): Promise<void> {
  const missing: string[] = [];
  for (let folder = resolve(path); !(await isThere(folder)); folder = dirname(folder))
    missing.unshift(folder);
  for (const folder of missing) {
    await mkdir(folder, { mode: 0o700 }).catch(async (error: unknown) => {
      // Another process may have created it meanwhile.
      if (!(await isThere(folder))) throw error;
    });
  }
}

/** A dangling link counts as existing: nothing can be created in its place. */
async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}
