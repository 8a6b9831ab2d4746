// Shares one read among all streams that make the same request. A change wakes every stream
// of its region at once, and most of them have the same cursor: with a query for each, every
// change would cost a fleet as many queries as it has streams.
//
// A result may be slightly old, as if the stream had asked slightly earlier: its rows and
// its counter belong together, and a stream that waits for changes after that counter wakes
// at once if there are any.
import type { Clock } from "../concurrency/clock.ts";
import type { KindName } from "../kinds/kinds.ts";
import type { ChangeSource } from "./desired-feed.ts";
import type { Changes } from "./store.ts";

/** A full batch is kept for streams that follow close behind, as a fleet does after a restart. */
const keptMs = 1_000;
const keptMax = 64;

interface Read {
  readonly answer: Promise<Changes<KindName>>;
  /** Undefined while the read runs. */
  endedMs?: number;
}

export class SharedReads implements ChangeSource {
  private readonly source: ChangeSource;
  private readonly clock: Clock;
  private readonly reads = new Map<string, Read>();

  constructor(source: ChangeSource, deps: { readonly clock: Clock }) {
    this.source = source;
    this.clock = deps.clock;
  }

  changesSince<K extends KindName>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>> {
    const key = `${kind} ${cursor} ${limit} ${region}`;
    const known = this.reads.get(key);
    const isFresh = known?.endedMs === undefined || this.clock.nowMs() - known.endedMs < keptMs;
    const read = known !== undefined && isFresh ? known : this.begin(key, region, kind, cursor, limit);
    // The key contains the kind, so the rows are of that kind.
    return read.answer as Promise<Changes<K>>;
  }

  waitForChange(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void> {
    return this.source.waitForChange(region, counterSeen, signal);
  }

  private begin(key: string, region: string, kind: KindName, cursor: bigint, limit: number): Read {
    const read: Read = { answer: this.source.changesSince(region, kind, cursor, limit) };
    this.reads.set(key, read);
    const forget = () => {
      if (this.reads.get(key) === read) this.reads.delete(key);
    };
    read.answer.then(({ isFull }) => {
      if (isFull) this.keep(read);
      else forget();
    }, forget);
    return read;
  }

  private keep(read: Read): void {
    const nowMs = this.clock.nowMs();
    read.endedMs = nowMs;
    for (const [key, { endedMs }] of this.reads) {
      if (endedMs === undefined) continue;
      // A result that no stream can use any more only takes memory.
      if (nowMs - endedMs >= keptMs || this.reads.size > keptMax) this.reads.delete(key);
    }
  }
}
