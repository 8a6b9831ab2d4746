// Watches over processes while something waits for them: when one ends, the
// wait ends too, with that one's name and last words instead of a timeout.

import { readFile } from "node:fs/promises";
import type { Leashed } from "./leash.ts";

const tailLines = 15;

/** Resolves as `task` does; rejects as soon as a component ends, the task fails or the signal aborts. */
export async function whileAlive<T>(
  components: readonly Leashed[],
  task: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const over = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { signal: over.signal });
  });
  const deaths = components.map(async (component): Promise<never> => {
    const how = await component.ended;
    throw new Error(`${component.name} ended early (${how})\n${await logTail(component)}`);
  });
  const outcome = task(AbortSignal.any([signal, over.signal])).catch(async (error: unknown) => {
    const tails = await Promise.all(components.map(logTail));
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${tails.join("\n")}`, {
      cause: error,
    });
  });
  try {
    return await Promise.race([outcome, aborted, ...deaths]);
  } finally {
    over.abort();
  }
}

async function logTail(component: Leashed): Promise<string> {
  const text = await readFile(component.logPath, "utf8").catch(() => "");
  const lines = text.trimEnd().split("\n").slice(-tailLines);
  return [`--- ${component.name}, end of its log:`, ...lines].join("\n");
}
