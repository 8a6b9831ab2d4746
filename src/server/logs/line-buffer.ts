// The lines that wait for one reader. Its size is limited: what comes while it is full is dropped and counted, and the reader
// learns at that place how many lines are missing.
import { create } from "@bufbuild/protobuf";
import { ChangeSignal } from "../../concurrency/change-signal.ts";
import type { LogEntry } from "../../gen/ctrl/v1/logs_pb.ts";
import { type StreamLogsResponse, StreamLogsResponseSchema } from "../../gen/krane/admin/v1/admin_pb.ts";

const bufferedBytesMax = 512 * 1024;
const overheadBytes = 200;

type Item =
  | { readonly kind: "entry"; readonly entry: LogEntry; readonly bytes: number }
  | { readonly kind: "dropped"; count: bigint };

export class LineBuffer {
  private readonly changed = new ChangeSignal();
  private items: Item[] = [];
  private bytes = 0;
  private failure: { readonly error: unknown } | undefined;
  private isClosed = false;

  get isFull(): boolean {
    return this.bytes > bufferedBytesMax;
  }

  /** All of them, or none if the reader has not taken enough of those before. Notes count too: they take as much memory. */
  add(entries: readonly LogEntry[]): void {
    if (this.isFull) {
      this.addDropped(BigInt(entries.length));
      return;
    }
    for (const entry of entries) {
      const bytes = Buffer.byteLength(entry.text) + overheadBytes;
      this.items.push({ kind: "entry", entry, bytes });
      this.bytes += bytes;
    }
    this.changed.wakeAll();
  }

  addDropped(count: bigint): void {
    if (count <= 0n) return;
    const last = this.items.at(-1);
    if (last?.kind === "dropped") last.count += count;
    else this.items.push({ kind: "dropped", count });
    this.changed.wakeAll();
  }

  /** Nothing more comes; what is there is still read. */
  close(): void {
    this.isClosed = true;
    this.changed.wakeAll();
  }

  /** The same, and then reading fails. */
  fail(error: unknown): void {
    this.failure ??= { error };
    this.close();
  }

  /** Resolves when the reader has taken something, or the buffer is closed. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.isFull && !this.isClosed) await this.changed.wait(signal);
  }

  async *read(signal: AbortSignal): AsyncGenerator<StreamLogsResponse, void> {
    for (;;) {
      signal.throwIfAborted();
      const item = this.items.shift();
      if (item === undefined) {
        if (this.failure !== undefined) throw this.failure.error;
        if (this.isClosed) return;
        await this.changed.wait(signal);
        continue;
      }
      if (item.kind === "entry") {
        this.bytes -= item.bytes;
        this.changed.wakeAll();
        yield create(StreamLogsResponseSchema, { entry: item.entry });
      } else yield create(StreamLogsResponseSchema, { dropped: item.count });
    }
  }
}
