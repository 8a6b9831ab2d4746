// The lines that wait to be sent for one request. Whoever adds to a full queue waits, and so the container's log is read no
// faster than it can be sent: Kubernetes keeps the rest in its file.
import { withTimeout } from "../../concurrency/abort.ts";
import { ChangeSignal } from "../../concurrency/change-signal.ts";
import type { Clock } from "../../concurrency/clock.ts";

export interface Entry {
  readonly podName: string;
  readonly timeNs: bigint;
  readonly text: string;
  readonly cutBytes: number;
  readonly isNote: boolean;
}

const queuedBytesMax = 256 * 1024;
const batchBytesMax = 64 * 1024;
const batchEntriesMax = 1_000;
// Names and numbers of an entry.
const overheadBytes = 100;

export function bytesOf({ text }: Entry): number {
  // In UTF-8 a character of UTF-16 has up to three bytes; lines are mostly ASCII.
  return Buffer.byteLength(text) + overheadBytes;
}

export class EntryQueue {
  private readonly clock: Clock;
  private readonly changed = new ChangeSignal();
  private entries: Entry[] = [];
  private bytes = 0;
  private isClosed = false;

  constructor(deps: { readonly clock: Clock }) {
    this.clock = deps.clock;
  }

  /** Whether no more comes, and everything was taken. */
  get isDrained(): boolean {
    return this.isClosed && this.entries.length === 0;
  }

  async add(entry: Entry, signal: AbortSignal): Promise<void> {
    while (this.bytes > queuedBytesMax) await this.changed.wait(signal);
    signal.throwIfAborted();
    this.entries.push(entry);
    this.bytes += bytesOf(entry);
    this.changed.wakeAll();
  }

  /** No more comes. */
  close(): void {
    this.isClosed = true;
    this.changed.wakeAll();
  }

  /** What is there, at most one call's worth; waits a while if there is nothing. */
  async take(waitMs: number, signal: AbortSignal): Promise<readonly Entry[]> {
    if (this.entries.length === 0 && !this.isClosed)
      await withTimeout(this.clock, waitMs, signal, (inner) => this.changed.wait(inner)).catch(() =>
        signal.throwIfAborted(),
      );
    let count = 0;
    for (let bytes = 0; count < Math.min(batchEntriesMax, this.entries.length); count++) {
      bytes += bytesOf(this.entries[count] as Entry);
      if (count > 0 && bytes > batchBytesMax) break;
    }
    const taken = this.entries.splice(0, count);
    for (const entry of taken) this.bytes -= bytesOf(entry);
    this.changed.wakeAll();
    return taken;
  }
}
