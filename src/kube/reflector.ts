// Keeps a cache in sync with one kind of the API server, until the signal aborts.
//
// It reads the complete state first, as a stream if the server supports it (WatchList), else in pages; then it watches
// the changes from exactly that version on. When a watch ends, the next one resumes where it was. No response of the
// server ends the loop: only the signal does, or a bug.

import { linkSignals } from "../concurrency/abort.ts";
import { backoffDelayMs, clampRetryAfterMs } from "../concurrency/backoff.ts";
import { type Clock, sleep, type Timer } from "../concurrency/clock.ts";
import { notify } from "../concurrency/notify.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { KubeApi, Selection, WatchEvent, WatchOptions } from "./api.ts";
import { KubeApiError } from "./errors.ts";
import { listAll } from "./list-all.ts";
import { type CacheEntry, isOlder, type ObjectCache } from "./object-cache.ts";
import type { KubeObject, ResourceKind } from "./types.ts";

export interface ReflectorOptions<T extends KubeObject, P, I extends string> {
  readonly kind: ResourceKind<T>;
  readonly selection?: Selection;
  readonly cache: ObjectCache<T, P, I>;
  /** Called for every failure. Its own errors are ignored. */
  readonly onError?: (error: KubeApiError) => void;
  /** Default 90 s: bookmarks come every 60 s. */
  readonly silenceMs?: number;
  /** The complete state is read again after this long, in case an event was lost. Default 1 h. */
  readonly relistAfterMs?: number;
}

export interface ReflectorDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
}

export interface ReflectorState {
  readonly synced: boolean;
  /** Failures in a row, which set the back-off; 0 after two healthy minutes. */
  readonly failures: number;
  /** The error of the last attempt; absent as soon as a watch is open on a complete state. */
  readonly lastError?: { readonly atMs: number; readonly error: KubeApiError };
}

const backoff = { initialMs: 800, maxMs: 30_000, jitter: "equal" } as const;
const healthyAfterMs = 120_000;

// A watch that ends sooner and without an event counts as a failure. Resuming at once could mean thousands of requests
// per second.
const shortWatchMs = 1_000;

// After this many signs that the server is behind, its state is accepted: etcd may have been restored from a backup,
// and then waiting for it to catch up would never end.
const laggingMax = 5;

export class Reflector<T extends KubeObject, P, I extends string = never> {
  private readonly options: ReflectorOptions<T, P, I>;
  private readonly deps: ReflectorDeps;
  /** Where the next watch resumes; undefined if the complete state is needed first. */
  private resumeAt: string | undefined;
  private streamsInitialState = true;
  private listedAtMs = 0;
  private triedAtMs = 0;
  private failures = 0;
  private lagging = 0;
  private most = 0;
  private lastError: ReflectorState["lastError"];

  constructor(options: ReflectorOptions<T, P, I>, deps: ReflectorDeps) {
    this.options = options;
    this.deps = deps;
  }

  /** The most objects that one attempt to read the complete state has brought. It grows as long as that makes headway. */
  get initial(): number {
    return this.most;
  }

  state(): ReflectorState {
    return {
      synced: this.options.cache.synced,
      failures: this.recentFailures(),
      ...(this.lastError === undefined ? {} : { lastError: this.lastError }),
    };
  }

  /** Resolves when the signal aborts; rejects only for a bug, never for an error of the API server. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    this.resumeAt = undefined;
    this.triedAtMs = clock.nowMs();
    while (!signal.aborted) {
      const pauseMs = await this.tryOnce(signal);
      if (pauseMs === 0) continue;
      await sleep(clock, pauseMs, signal).catch(() => undefined);
      this.triedAtMs = clock.nowMs();
    }
  }

  /** Watches until the watch ends or fails; returns how long to wait before the next attempt. */
  private async tryOnce(signal: AbortSignal): Promise<number> {
    try {
      if (this.deps.clock.nowMs() - this.listedAtMs >= (this.options.relistAfterMs ?? 3_600_000)) {
        this.resumeAt = undefined;
      }
      if (this.resumeAt === undefined && !this.streamsInitialState) await this.list(signal);
      await this.watch(signal);
      return 0;
    } catch (error) {
      if (signal.aborted) return 0;
      if (!(error instanceof KubeApiError)) throw error;
      this.lastError = { atMs: this.deps.clock.wallMs(), error };
      notify(() => this.options.onError?.(error));
      return this.pauseAfter(error);
    }
  }

  private async list(signal: AbortSignal): Promise<void> {
    const { kind, selection = {}, cache } = this.options;
    let read = 0;
    const keep = (object: T) => {
      read += 1;
      this.most = Math.max(this.most, read);
      return cache.entryOf(object);
    };
    const whole = await listAll(this.deps.api, kind, selection, keep, signal);
    this.takeWhole(whole.items, whole.resourceVersion);
  }

  private async watch(signal: AbortSignal): Promise<void> {
    const { kind, selection, silenceMs = 90_000 } = this.options;
    const { clock, random } = this.deps;
    const begunMs = clock.nowMs();
    let brought = 0;
    let initial = this.resumeAt === undefined ? new Map<string, CacheEntry<P>>() : undefined;
    // A stream of the initial state proves nothing before it is complete: some servers accept it and never finish.
    const noteHealthy = () => {
      if (initial === undefined) this.lastError = undefined;
    };
    const options = {
      ...selection,
      ...(this.resumeAt === undefined ? { sendInitialEvents: true } : { resourceVersion: this.resumeAt }),
      bookmarks: true,
      // Spread, so that the watches of many agents do not end at the same time.
      timeoutSeconds: Math.round(uniform(random, 300, 600)),
      silenceMs,
      onOpen: noteHealthy,
    };
    const onEvent = (event: WatchEvent<T>) => {
      if (initial !== undefined) {
        if (this.takeInitial(event, initial)) initial = undefined;
        noteHealthy();
        return;
      }
      this.take(event);
      if (event.type !== "BOOKMARK") brought += 1;
    };
    await followWatch(this.deps, kind, options, onEvent, signal);
    if (initial !== undefined) {
      throw new KubeApiError("network", `watch ${kind.plural}: ended before the initial state was complete`);
    }
    if (brought === 0 && clock.nowMs() - begunMs < shortWatchMs) {
      throw new KubeApiError("network", `watch ${kind.plural}: ended as soon as it was opened`);
    }
  }

  /** Collects the initial state aside, so that an interrupted stream changes nothing; returns true at its end. */
  private takeInitial(event: WatchEvent<T>, initial: Map<string, CacheEntry<P>>): boolean {
    if (event.type === "BOOKMARK") {
      if (!event.initialEventsEnd) {
        throw new KubeApiError("malformed", "the server does not support sendInitialEvents");
      }
      this.takeWhole(initial.values(), event.resourceVersion);
      return true;
    }
    const entry = this.options.cache.entryOf(event.object);
    if (event.type === "DELETED") initial.delete(entry.key);
    else initial.set(entry.key, entry);
    this.most = Math.max(this.most, initial.size);
    return false;
  }

  private takeWhole(entries: Iterable<CacheEntry<P>>, resourceVersion: string): void {
    const { cache, kind } = this.options;
    if (this.lagging < laggingMax && this.isBehind(resourceVersion)) {
      throw new KubeApiError(
        "refused",
        `list ${kind.plural}: the server returned a state older than the cached one`,
      );
    }
    cache.replace(entries, resourceVersion);
    this.resumeAt = resourceVersion;
    this.listedAtMs = this.deps.clock.nowMs();
    this.lagging = 0;
  }

  private take(event: WatchEvent<T>): void {
    const { cache } = this.options;
    if (event.type === "BOOKMARK") {
      if (this.isBehind(event.resourceVersion)) return;
      this.lagging = 0;
      cache.advance(event.resourceVersion);
    } else {
      const entry = cache.entryOf(event.object);
      // An older event does not show that the server has reached the cached state. After an event with a version that
      // was not true, all later ones are older, and the bookmarks lead to a relist.
      if (!isOlder(entry.resourceVersion, cache.resourceVersion ?? "0")) this.lagging = 0;
      if (event.type === "DELETED") cache.remove(entry);
      else cache.put(entry);
    }
    this.resumeAt = cache.resourceVersion;
  }

  /**
   * The server accepts a watch from a version that it has not reached yet, and leaves out every event up to that
   * version. Only the bookmarks show that it is behind.
   */
  private isBehind(resourceVersion: string): boolean {
    const { cache, kind } = this.options;
    if (cache.resourceVersion === undefined || !isOlder(resourceVersion, cache.resourceVersion)) return false;
    this.lagging += 1;
    if (this.lagging < laggingMax) return true;
    this.resumeAt = undefined;
    throw new KubeApiError("refused", `watch ${kind.plural}: the server stays behind the cached state`);
  }

  private pauseAfter(error: KubeApiError): number {
    if (this.resumeAt === undefined && this.streamsInitialState && this.lacksInitialEvents(error)) {
      this.streamsInitialState = false;
      return 0;
    }
    // After an unreadable event, resuming from the one before it would only bring it again.
    const isUnreadable = error.code === "malformed" || error.code === "too-large";
    if (error.isExpired || isUnreadable) this.resumeAt = undefined;
    // The server does not know our version: it lags, or was restored.
    if (this.resumeAt !== undefined && (error.status === 400 || error.status === 504)) {
      this.lagging += 1;
      if (this.lagging >= laggingMax) this.resumeAt = undefined;
    }
    const earlier = this.recentFailures();
    const pauseMs = backoffDelayMs(backoff, earlier, this.deps.random);
    this.failures = earlier + 1;
    this.triedAtMs = this.deps.clock.nowMs();
    return error.retryAfterMs === undefined
      ? pauseMs
      : Math.max(pauseMs, clampRetryAfterMs(error.retryAfterMs));
  }

  private recentFailures(): number {
    return this.deps.clock.nowMs() - this.triedAtMs >= healthyAfterMs ? 0 : this.failures;
  }

  /** Servers without support for the initial state in a watch refuse it, ignore it, or never finish it. */
  private lacksInitialEvents(error: KubeApiError): boolean {
    if (error.code === "timeout") return this.failures >= 2;
    return error.status === 400 || error.status === 422 || error.code === "malformed";
  }
}

interface WatchDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
}

/**
 * Runs one watch under a watchdog: a connection that a firewall dropped looks like a quiet cluster, except that no
 * bookmarks come. Resolves when the server ends the watch. An error thrown by `onEvent` ends it too, and is passed on.
 */
async function followWatch<T extends KubeObject>(
  deps: WatchDeps,
  kind: ResourceKind<T>,
  options: WatchOptions & { readonly silenceMs: number },
  onEvent: (event: WatchEvent<T>) => void,
  signal: AbortSignal,
): Promise<void> {
  const { silenceMs, ...watchOptions } = options;
  const { api, clock } = deps;
  const linked = linkSignals(signal);
  let heardAtMs = clock.nowMs();

  // Restarting a timer for each of ten thousand events per second costs more than checking, when it fires, how much
  // time is left.
  const check = () => {
    const leftMs = heardAtMs + silenceMs - clock.nowMs();
    if (leftMs > 0) timer = clock.setTimer(leftMs, check);
    else linked.abort(new KubeApiError("timeout", `watch ${kind.plural}: silent for ${silenceMs} ms`));
  };
  let timer: Timer = clock.setTimer(silenceMs, check);

  try {
    for await (const event of api.watch(kind, watchOptions, linked.signal)) {
      heardAtMs = clock.nowMs();
      onEvent(event);
    }
    linked.signal.throwIfAborted();
  } finally {
    timer.cancel();
    linked.release();
  }
}
