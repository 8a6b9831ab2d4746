// A controller works only once it sees what is there: a cache that is still empty would make it write
// everything anew.
import { withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { DefinedKind } from "./controller-definition.ts";

export interface WatchingController {
  readonly name: string;
  readonly kinds: readonly DefinedKind[];
}

/** Rejects with what each watch that is not open yet has run into. */
export async function whenWatching(
  { name, kinds }: WatchingController,
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const required = kinds.filter((kind) => kind.required);
  try {
    await withTimeout(clock, timeoutMs, signal, async (waiting) => {
      await Promise.all(required.map((kind) => kind.whenSynced(waiting)));
    });
  } catch (cause) {
    const closed = required.filter((kind) => !kind.synced).map((kind) => kind.status());
    const reasons = closed.map(({ kind, lastError }) => `${kind}: ${lastError || "no answer yet"}`);
    throw new Error(`controller ${name} cannot watch ${reasons.join("; ")}`, { cause });
  }
}
