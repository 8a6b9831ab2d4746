// How often one caller may come: a bucket per key that fills steadily and is emptied by calls. The table
// has a fixed size, so that callers who invent keys cannot fill the memory (K10). Who is pushed out
// starts again with a full bucket, so this limits a caller with one key, and never a crowd of keys:
// whatever the calls cost needs a limit of its own.
import type { Clock } from "../concurrency/clock.ts";

export interface RateLimitOptions {
  /** Calls at once after a time of silence. */
  readonly burst: number;
  readonly perSecond: number;
  readonly keysMax: number;
}

interface Bucket {
  calls: number;
  filledAtMs: number;
}

export class RateLimit {
  private readonly options: RateLimitOptions;
  private readonly clock: Clock;
  // In the order of the last use.
  private readonly buckets = new Map<string, Bucket>();

  constructor(options: RateLimitOptions, deps: { readonly clock: Clock }) {
    this.options = options;
    this.clock = deps.clock;
  }

  get size(): number {
    return this.buckets.size;
  }

  /** False for one too many. */
  take(key: string): boolean {
    const bucket = this.filledBucket(key);
    this.buckets.delete(key);
    this.buckets.set(key, bucket);
    if (bucket.calls < 1) return false;
    bucket.calls -= 1;
    return true;
  }

  private filledBucket(key: string): Bucket {
    const { burst, perSecond, keysMax } = this.options;
    const nowMs = this.clock.nowMs();
    const bucket = this.buckets.get(key);
    if (bucket === undefined) {
      const [oldest] = this.buckets.keys();
      if (this.buckets.size >= keysMax && oldest !== undefined) this.buckets.delete(oldest);
      return { calls: burst, filledAtMs: nowMs };
    }
    bucket.calls = Math.min(burst, bucket.calls + ((nowMs - bucket.filledAtMs) / 1_000) * perSecond);
    bucket.filledAtMs = nowMs;
    return bucket;
  }
}
