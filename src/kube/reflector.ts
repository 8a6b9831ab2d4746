// Keeps a cache equal to what the API server has of one kind, for as long as the signal lives.
//
// A whole state first, as a stream where the server can (WatchList), else as pages; then changes
// from exactly there on. The end of a watch is ordinary and resumes where it was. Whatever the
// server answers, the loop goes on: only the signal ends it, or a bug, which is not for it to hide.

import { linkSignals } from "../concurrency/abort.ts";
import { backoffDelayMs, clampRetryAfterMs } from "../concurrency/backoff.ts";
import { type Clock, sleep, type Timer } from "../concurrency/clock.ts";
import { notify } from "../concurrency/notify.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { KubeApi, Selection, WatchEvent, WatchOptions } from "./api.ts";
import { KubeApiError } from "./errors.ts";
import { listAll } from "./list-all.ts";
import type { CacheEntry, ObjectCache } from "./object-cache.ts";
import { isOlder } from "./resource-version.ts";
import type { KubeObject, ResourceKind } from "./types.ts";

export interface ReflectorOptions<T extends KubeObject, P, I extends string> {
  readonly kind: ResourceKind<T>;
  readonly selection?: Selection;
  readonly cache: ObjectCache<T, P, I>;
  /** Told of every failure; what it throws changes nothing. */
  readonly onError?: (error: KubeApiError) => void;
  /** Default 90 s: bookmarks come every 60 s. */
  readonly silenceMs?: number;
  /** A whole state is taken again when the last one is this old, should an event ever have been lost. Default 1 h. */
  readonly relistAfterMs?: number;
}

export interface ReflectorDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
}

export interface ReflectorState {
  readonly synced: boolean;
  /** Failures in a row, which pace the attempts; 0 after two healthy minutes. */
  readonly failures: number;
  /** What the last attempt ran into; absent from the moment in which a watch goes on from a whole state. */
  readonly lastError?: { readonly atMs: number; readonly error: KubeApiError };
}

const backoff = { initialMs: 800, maxMs: 30_000, jitter: "equal" } as const;
const healthyAfterMs = 120_000;

// A watch that ends sooner and has brought nothing is a server that cannot watch; resuming at once
// would ask it thousands of times a second.
const shortWatchMs = 1_000;

// How often to believe that a server lags behind before its past is taken for the truth: etcd may
// have been restored from a backup, and then waiting for the lost future would last for ever.
const laggingMax = 5;

export class Reflector<T extends KubeObject, P, I extends string = never> {
  private readonly options: ReflectorOptions<T, P, I>;
  private readonly deps: ReflectorDeps;
  /** Where the next watch goes on; undefined where a whole state is needed first. */
  private resumeAt: string | undefined;
  private streamsInitialState = true;
  private listedAtMs = 0;
  private triedAtMs = 0;
  private failures = 0;
  private lagging = 0;
  private lastError: ReflectorState["lastError"];

  constructor(options: ReflectorOptions<T, P, I>, deps: ReflectorDeps) {
    this.options = options;
    this.deps = deps;
  }

  state(): ReflectorState {
    return {
      synced: this.options.cache.synced,
      failures: this.recentFailures(),
      ...(this.lastError === undefined ? {} : { lastError: this.lastError }),
    };
  }

  /** Resolves when the signal aborts; rejects only for what is not the API server's doing. */
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

  /** Watches until that ends in some way; returns how long to wait before the next time. */
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
    const whole = await listAll(this.deps.api, kind, selection, (object) => cache.entryOf(object), signal);
    this.takeWhole(whole.items, whole.resourceVersion);
  }

  private async watch(signal: AbortSignal): Promise<void> {
    const { kind, selection, silenceMs = 90_000 } = this.options;
    const { clock, random } = this.deps;
    const begunMs = clock.nowMs();
    let brought = 0;
    let initial = this.resumeAt === undefined ? new Map<string, CacheEntry<P>>() : undefined;
    // A stream of the whole state proves nothing before its end: some servers take it and never finish it.
    const noteWell = () => {
      if (initial === undefined) this.lastError = undefined;
    };
    const options = {
      ...selection,
      ...(this.resumeAt === undefined ? { sendInitialEvents: true } : { resourceVersion: this.resumeAt }),
      bookmarks: true,
      // Spread, so that the watches of a fleet do not all end together.
      timeoutSeconds: Math.round(uniform(random, 300, 600)),
      silenceMs,
      onOpen: noteWell,
    };
    const onEvent = (event: WatchEvent<T>) => {
      if (initial !== undefined) {
        if (this.takeInitial(event, initial)) initial = undefined;
        noteWell();
        return;
      }
      this.take(event);
      if (event.type !== "BOOKMARK") brought += 1;
    };
    await followWatch(this.deps, kind, options, onEvent, signal);
    if (initial !== undefined) {
      throw new KubeApiError("network", `watch ${kind.plural}: ended before the whole state had come`);
    }
    if (brought === 0 && clock.nowMs() - begunMs < shortWatchMs) {
      throw new KubeApiError("network", `watch ${kind.plural}: ended as soon as it began`);
    }
  }

  /** Collects the initial state apart, so that a stream that is cut half way changes nothing; true at its end. */
  private takeInitial(event: WatchEvent<T>, initial: Map<string, CacheEntry<P>>): boolean {
    if (event.type === "BOOKMARK") {
      if (!event.initialEventsEnd) {
        throw new KubeApiError("malformed", "the server does not know sendInitialEvents");
      }
      this.takeWhole(initial.values(), event.resourceVersion);
      return true;
    }
    const entry = this.options.cache.entryOf(event.object);
    if (event.type === "DELETED") initial.delete(entry.key);
    else initial.set(entry.key, entry);
    return false;
  }

  private takeWhole(entries: Iterable<CacheEntry<P>>, resourceVersion: string): void {
    const { cache, kind } = this.options;
    if (this.lagging < laggingMax && this.isBehind(resourceVersion)) {
      throw new KubeApiError("refused", `list ${kind.plural}: the server is behind what was seen before`);
    }
    cache.replace(entries, resourceVersion);
    this.resumeAt = resourceVersion;
    this.listedAtMs = this.deps.clock.nowMs();
    this.lagging = 0;
  }

  private take(event: WatchEvent<T>): void {
    const { cache } = this.options;
    if (event.type === "BOOKMARK" && this.isBehind(event.resourceVersion)) return;
    this.lagging = 0;
    if (event.type === "BOOKMARK") cache.advance(event.resourceVersion);
    else if (event.type === "DELETED") cache.remove(cache.entryOf(event.object));
    else cache.put(cache.entryOf(event.object));
    this.resumeAt = cache.resourceVersion;
  }

  /**
   * A watch from a version that the server has not reached yet is not refused: it stays open, and
   * leaves out every event up to there. Only its bookmarks tell.
   */
  private isBehind(resourceVersion: string): boolean {
    const { cache, kind } = this.options;
    if (cache.resourceVersion === undefined || !isOlder(resourceVersion, cache.resourceVersion)) return false;
    this.lagging += 1;
    if (this.lagging < laggingMax) return true;
    this.resumeAt = undefined;
    throw new KubeApiError("refused", `watch ${kind.plural}: the server stays behind what was seen before`);
  }

  private pauseAfter(error: KubeApiError): number {
    if (this.resumeAt === undefined && this.streamsInitialState && this.lacksInitialEvents(error)) {
      this.streamsInitialState = false;
      return 0;
    }
    // After an event that cannot be read, going on from the one before it would only meet it again.
    const isUnreadable = error.code === "malformed" || error.code === "too-large";
    if (error.isExpired || isUnreadable) this.resumeAt = undefined;
    // The server does not know the version we are at: it lags, or its history is another one.
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

  /** Servers without the stream of the initial state refuse it, ignore it, or never finish it. */
  private lacksInitialEvents(error: KubeApiError): boolean {
    if (error.code === "timeout") return this.failures >= 2;
    return error.status === 400 || error.status === 422 || error.code === "malformed";
  }
}

// One watch, from its opening to its end, under a watchdog: a connection that a firewall forgot
// looks exactly like a cluster in which nothing happens, except that bookmarks stop coming.

interface WatchDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
}

/** Resolves when the server ends the watch. What `onEvent` throws ends it too, and passes through. */
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

  // Setting a timer anew for each of ten thousand events a second costs more than looking, when it
  // fires, how much of the time is left.
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
