// Loaded keys, for a while. Both the number and the age are limited: what is not used
// must not stay in memory for the life of the process, and a million keyrings must not
// take a million keys along (K10). A key goes when its time is over, asked for or not.
//
// Callers who want the same key at the same time share one load. It goes on when one of
// them leaves, and has a deadline of its own, so that a storage that hangs cannot keep
// later callers waiting behind it.

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
  // In the order of their last use, the oldest first.
  private readonly entries = new Map<string, { readonly value: V; readonly expiry: Timer }>();
  private readonly loads = new Map<string, Promise<V | undefined>>();

  constructor(options: KeyCacheOptions, clock: Clock) {
    this.options = options;
    this.clock = clock;
  }

  /** What is there already. Cheaper than get() for a caller that would not wait. */
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

  /** What was loaded before, or is loaded now. That there is none is not remembered. */
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

  /** Ends every load, and lets go of every key. */
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
