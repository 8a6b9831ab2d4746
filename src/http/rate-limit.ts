// Limits the rate of calls with one token bucket per key. The table has a fixed size, so that callers who invent keys
// cannot fill the memory (K10). An evicted key starts again with a full bucket, so this limits one key, not the sum of
// many keys: the cost of the calls needs a limit of its own.
import type { Clock } from "../concurrency/clock.ts";

export interface RateLimitOptions {
  /** Calls allowed at once after an idle time. */
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
  // Least recently used first.
  private readonly buckets = new Map<string, Bucket>();

  constructor(options: RateLimitOptions, deps: { readonly clock: Clock }) {
    this.options = options;
    this.clock = deps.clock;
  }

  get size(): number {
    return this.buckets.size;
  }

  /** Returns false when the limit is exceeded. */
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
