// Lets one process build while others wait for its result.
//
// The lock only saves work: a build becomes visible by one rename, so two holders at once
// (for example after a laptop slept) cost time and break nothing. That is why a lock that
// its holder stopped touching may simply be taken over.

import { mkdir, open, rm, stat, utimes } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const touchEveryMs = 2_000;
const abandonedAfterMs = 10_000;
const retryEveryMs = 250;

export async function withBuildLock<T>(
  path: string,
  onWait: () => void,
  task: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  let waited = false;
  while (!(await tryLock(path))) {
    if (!waited) {
      onWait();
      waited = true;
    }
    await delay(retryEveryMs, undefined, { signal });
  }
  const touch = setInterval(() => {
    const now = new Date();
    // A missing lock has been taken over; the rename at the end decides.
    utimes(path, now, now).catch(() => undefined);
  }, touchEveryMs);
  try {
    return await task();
  } finally {
    clearInterval(touch);
    await rm(path, { force: true });
  }
}

async function tryLock(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx")).close();
    return true;
  } catch (error) {
    if (!isCode(error, "EEXIST")) {
      throw error;
    }
  }
  const touchedMs = await stat(path).then(
    (found) => found.mtimeMs,
    () => 0,
  );
  if (Date.now() - touchedMs > abandonedAfterMs) {
    await rm(path, { force: true });
  }
  return false;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
