// Caches loaded keys. Number and age are limited: unused keys must not stay in memory for the life of the process, and a
// million keyrings must not mean a million keys in memory (K10). A key is dropped when it expires, used or not.
//
// Concurrent callers of the same key share one load. It continues if one of them aborts, and has its own deadline, so that
// a storage that hangs cannot block later callers.

import { withTimeout } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock, Timer } from "../concurrency/clock.ts";

export interface KeyCacheOptions {
  readonly entriesMax: number;
  readonly ageMaxMs: number;
  readonly loadTimeoutMs: number;
}

export class KeyCache<V> {
  private readonly options: KeyCacheOptions;
  private readonly clock: Clock;
  private readonly closed = new AbortController();
  // Least recently used first.
  private readonly entries = new Map<string, { readonly value: V; readonly expiry: Timer }>();
  private readonly loads = new Map<string, Promise<V | undefined>>();

  constructor(options: KeyCacheOptions, clock: Clock) {
    this.options = options;
    this.clock = clock;
  }

  /** Returns a cached value without waiting. Cheaper than get(). */
  peek(name: string): V | undefined {
    const entry = this.entries.get(name);
    if (entry === undefined) return undefined;
    this.entries.delete(name);
    this.entries.set(name, entry);
    return entry.value;
  }

  /** How many keys are in memory. */
  get size(): number {
    return this.entries.size;
  }

  /** Returns the cached value, or loads it. Absence is not cached. */
  async get(
    name: string,
    load: (signal: AbortSignal) => Promise<V | undefined>,
    signal: AbortSignal,
  ): Promise<V | undefined> {
    signal.throwIfAborted();
    return this.peek(name) ?? abortable(this.share(name, load), signal);
  }

  forget(name: string): void {
    this.entries.get(name)?.expiry.cancel();
    this.entries.delete(name);
  }

  /** Aborts every load, and drops every key. */
  close(reason: Error): void {
    this.closed.abort(reason);
    for (const name of this.entries.keys()) this.forget(name);
  }

  private share(name: string, load: (signal: AbortSignal) => Promise<V | undefined>): Promise<V | undefined> {
    const running = this.loads.get(name);
    if (running !== undefined) return running;
    const started = withTimeout(this.clock, this.options.loadTimeoutMs, this.closed.signal, load)
      .then((value) => {
        if (value !== undefined) this.keep(name, value);
        return value;
      })
      .finally(() => this.loads.delete(name));
    this.loads.set(name, started);
    return started;
  }

  private keep(name: string, value: V): void {
    if (this.closed.signal.aborted) return;
    this.forget(name);
    const expiry = this.clock.setTimer(this.options.ageMaxMs, () => this.forget(name));
    this.entries.set(name, { value, expiry });
    if (this.entries.size <= this.options.entriesMax) return;
    const [oldest] = this.entries.keys();
    if (oldest !== undefined) this.forget(oldest);
  }
}

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => reject(signal.reason));
    void work.then(resolve, reject).finally(stopListening);
  });
}
