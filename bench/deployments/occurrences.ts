// Records events during a benchmark, and waits for them with a time limit.
import { performance } from "node:perf_hooks";

type Listener<T> = (value: T, atMs: number) => void;

export class Occurrences<T> {
  private readonly listeners = new Set<Listener<T>>();
  private lastAtMs = performance.now();

  emit(value: T): void {
    const atMs = performance.now();
    this.lastAtMs = atMs;
    for (const listener of this.listeners) listener(value, atMs);
  }

  /** The time, by `performance.now()`, of the first accepted event from now on. */
  until(what: string, accepts: (value: T) => boolean, wait: Wait): Promise<number> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        this.listeners.delete(listener);
        wait.signal.removeEventListener("abort", abort);
      };
      const fail = (reason: unknown) => {
        end();
        reject(reason);
      };
      const abort = () => fail(wait.signal.reason);
      const listener: Listener<T> = (value, atMs) => {
        if (!accepts(value)) return;
        end();
        resolve(atMs);
      };
      const timer = setTimeout(() => fail(new Error(`not within ${wait.limitMs} ms: ${what}`)), wait.limitMs);
      if (wait.signal.aborted) return abort();
      wait.signal.addEventListener("abort", abort, { once: true });
      this.listeners.add(listener);
    });
  }

  /** Resolves when every one of the names has occurred. */
  untilAll(what: string, names: Iterable<string>, nameOf: (value: T) => string, wait: Wait): Promise<number> {
    const missing = new Set(names);
    return this.until(what, (value) => missing.delete(nameOf(value)) && missing.size === 0, wait);
  }

  /** Resolves when nothing has happened for this long. */
  async quiet(what: string, forMs: number, { limitMs, signal }: Wait): Promise<void> {
    const begun = performance.now();
    for (;;) {
      const leftMs = Math.max(this.lastAtMs, begun) + forMs - performance.now();
      if (leftMs <= 0) return;
      if (performance.now() - begun > limitMs) throw new Error(`not quiet within ${limitMs} ms: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, leftMs));
      signal.throwIfAborted();
    }
  }
}

export interface Wait {
  readonly limitMs: number;
  /** Also fails with the source of the events, so that no wait continues without it. */
  readonly signal: AbortSignal;
}
