// Keeps one kind's LiveObjects up to date with a list and a watch. A watch that ends is resumed; one that fails starts
// over with a list.
import { type ApiServerDeps, sleep } from "../clock.ts";
import type { KubeObject, ResourceKind } from "../types.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { backoffMs } from "./key-queue.ts";
import type { LiveObjects } from "./live-objects.ts";

export interface KindWatchDeps extends ApiServerDeps {
  readonly client: ClusterClient;
  /** Called for every failure; the watch is retried. */
  onError(part: string, key: string, error: unknown): void;
}

const retry = { initialMs: 100, maxMs: 5_000 };

/** Resolves when the signal has aborted. Never rejects; errors make it start over. */
export async function watchKind<T extends KubeObject>(
  kind: ResourceKind<T>,
  objects: LiveObjects<T>,
  deps: KindWatchDeps,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const { items, resourceVersion } = await deps.client.list(kind, undefined, signal);
      objects.replace(items);
      failures = 0;
      await follow(kind, objects, resourceVersion, deps, signal);
    } catch (error) {
      if (!signal.aborted) deps.onError("watch", kind.plural, error);
      await sleep(deps.clock, backoffMs(retry, failures++, deps.random), signal).catch(() => undefined);
    }
  }
}

async function follow<T extends KubeObject>(
  kind: ResourceKind<T>,
  objects: LiveObjects<T>,
  from: string,
  { client, clock }: KindWatchDeps,
  signal: AbortSignal,
): Promise<void> {
  let resourceVersion = from;
  while (!signal.aborted) {
    const events = await client.watch(kind, resourceVersion, signal);
    const before = resourceVersion;
    for await (const value of events) {
      resourceVersion = take(value as WatchValue<T>, objects) ?? resourceVersion;
    }
    // Pause, in case the server ends every watch immediately.
    if (before === resourceVersion) await sleep(clock, retry.maxMs, signal);
  }
}

interface WatchValue<T extends KubeObject> {
  readonly type: string;
  readonly object: T;
}

function take<T extends KubeObject>(
  { type, object }: WatchValue<T>,
  objects: LiveObjects<T>,
): string | undefined {
  if (type === "ERROR") throw new Error("the watch ended with an error event");
  if (type === "DELETED") objects.observeRemoval(object);
  else if (type !== "BOOKMARK") objects.observe(object);
  return object.metadata?.resourceVersion;
}
