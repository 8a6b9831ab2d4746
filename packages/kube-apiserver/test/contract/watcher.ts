// Reads a watch while the case goes on, and hands its events out in order. A case that waits for
// an event that never comes fails with what it saw instead.
import { EventEmitter, once } from "node:events";
import type { ContractApi, WatchEvent, WatchOptions } from "./api.ts";
import type { Kind, Manifest } from "./manifest.ts";

export type Seen = WatchEvent;

const patienceMs = 20_000;

export class Watcher {
  /** Resolves when the server ends the watch, rejects when it refuses or breaks it. */
  readonly ended: Promise<void>;
  private readonly events: Seen[] = [];
  private readonly stop = new AbortController();
  private readonly arrivals = new EventEmitter();
  private taken = 0;

  constructor(api: ContractApi, kind: Kind, options: WatchOptions, signal: AbortSignal) {
    this.ended = this.pump(api.watch(kind, options, AbortSignal.any([signal, this.stop.signal])));
    // A case that does not look at the end of its watch must not crash the process.
    this.ended.catch(() => undefined);
  }

  async next(): Promise<Seen> {
    const patience = AbortSignal.timeout(patienceMs);
    for (;;) {
      const event = this.events[this.taken];
      if (event !== undefined) {
        this.taken += 1;
        return event;
      }
      const news = once(this.arrivals, "event", { signal: patience }).then(
        () => "event",
        () => "late",
      );
      const heard = await Promise.race([news, this.ended.then(() => "end")]);
      if (heard !== "event" && this.taken === this.events.length) {
        const seen = this.events.map(describeEvent).join(", ");
        throw new Error(`the watch ${heard === "late" ? "brings nothing more" : "ended"}; seen: ${seen}`);
      }
    }
  }

  async take(count: number): Promise<readonly Seen[]> {
    const events: Seen[] = [];
    while (events.length < count) events.push(await this.next());
    return events;
  }

  /** All events up to and including the first that matches. */
  async until(matches: (event: Seen) => boolean): Promise<readonly Seen[]> {
    const events: Seen[] = [];
    for (;;) {
      const event = await this.next();
      events.push(event);
      if (matches(event)) return events;
    }
  }

  close(): void {
    this.stop.abort();
  }

  private async pump(source: AsyncIterable<Seen>): Promise<void> {
    try {
      for await (const event of source) {
        this.events.push(event);
        this.arrivals.emit("event");
      }
    } catch (error) {
      if (!this.stop.signal.aborted) throw error;
    }
  }
}

/** `ADDED a`, `BOOKMARK`: enough to compare an order of events. */
export function describeEvent(event: Seen): string {
  return event.type === "BOOKMARK" ? "BOOKMARK" : `${event.type} ${event.object.metadata?.name}`;
}

export function objectOf(event: Seen | undefined): Manifest {
  if (event === undefined || event.type === "BOOKMARK") throw new Error("the event carries no object");
  return event.object;
}
