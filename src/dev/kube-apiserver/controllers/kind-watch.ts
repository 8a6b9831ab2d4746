// Keeps one kind's LiveObjects up to date: a list, then changes from there, for ever. A
// watch that ends is taken up where it stopped; one that fails starts over with a list.
import { createBackoff } from "../../../concurrency/backoff.ts";
import { type Clock, sleep } from "../../../concurrency/clock.ts";
import type { Random } from "../../../concurrency/random.ts";
import { KubeApiError } from "../../../kube/errors.ts";
import type { KubeObject, ResourceKind } from "../../../kube/types.ts";
import type { ClusterClient } from "./cluster-client.ts";
import type { LiveObjects } from "./live-objects.ts";

export interface KindWatchDeps {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Told of every failure; the watch goes on. */
  onError(part: string, key: string, error: unknown): void;
}

const retry = { initialMs: 100, maxMs: 5_000, jitter: "equal" } as const;

/** Resolves when the signal has aborted; errors only make it start over. */
export async function watchKind<T extends KubeObject>(
  kind: ResourceKind<T>,
  objects: LiveObjects<T>,
  deps: KindWatchDeps,
  signal: AbortSignal,
): Promise<void> {
  const backoff = createBackoff(retry, deps.random);
  while (!signal.aborted) {
    try {
      const { items, resourceVersion } = await deps.client.list(kind, undefined, signal);
      objects.replace(items);
      backoff.reset();
      await follow(kind, objects, resourceVersion, deps, signal);
    } catch (error) {
      if (!signal.aborted) deps.onError("watch", kind.plural, error);
      await sleep(deps.clock, backoff.nextMs(), signal).catch(() => undefined);
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
    const stream = await client.watch(kind, resourceVersion, signal);
    if (stream.status !== 200) throw new KubeApiError("refused", `watch of ${kind.plural} was refused`);
    const before = resourceVersion;
    for await (const value of stream.values) {
      resourceVersion = take(value as WatchValue<T>, objects) ?? resourceVersion;
    }
    // A server that ends every watch at once would otherwise be asked without a pause.
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
  if (type === "ERROR") throw new KubeApiError("refused", "the watch ended with an error event");
  if (type === "DELETED") objects.observeRemoval(object);
  else if (type !== "BOOKMARK") objects.observe(object);
  return object.metadata?.resourceVersion;
}
