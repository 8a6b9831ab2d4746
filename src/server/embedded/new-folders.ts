// Makes folders step by step. mkdir's own `recursive` tries for ever, and cannot be interrupted, where the system says of
// a new folder in one that is there that there is no such file, as below /proc.
import { lstat, mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Makes the folder and those above it that are missing, for their owner alone. */
export async function makeFolders(path: string): Promise<void> {
  const missing: string[] = [];
  for (let folder = resolve(path); !(await isThere(folder)); folder = dirname(folder))
    missing.unshift(folder);
  for (const folder of missing) {
    await mkdir(folder, { mode: 0o700 }).catch(async (error: unknown) => {
      // Somebody else may have made it meanwhile.
      if (!(await isThere(folder))) throw error;
    });
  }
}

/** A link that leads nowhere is there too: nothing can be made in its place. */
async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}
