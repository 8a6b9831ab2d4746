// Sends the lines of one request to the control plane, in batches and at a limited rate, until somebody says that they are
// not wanted any more. A batch that cannot be delivered is not repeated: the reader learns how many lines are missing.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import type {
  LogEndSchema,
  SendLogLinesRequestSchema,
  SendLogLinesResponse,
} from "../../gen/ctrl/v1/logs_pb.ts";
import { bytesOf, type Entry, type EntryQueue } from "./entry-queue.ts";

export type SendLines = (
  request: MessageInitShape<typeof SendLogLinesRequestSchema>,
  signal: AbortSignal,
) => Promise<SendLogLinesResponse>;

export type End = MessageInitShape<typeof LogEndSchema>;

export interface SenderOptions {
  readonly ticket: Uint8Array;
  readonly instanceId: string;
}

// For one request. Whoever reads more than that in a terminal is looking for a file.
const linesPerSecondMax = 2_000;
const bytesPerSecondMax = 1024 * 1024;
// Lines that come together go out together.
const gatherMs = 50;
// Also without lines, so that both sides know that the other one is still there.
const everyMs = 3_000;
const failuresMax = 5;
const retryMs = 1_000;

export class EntrySender {
  private readonly options: SenderOptions;
  private readonly send: SendLines;
  private readonly clock: Clock;
  private linesSent = 0n;
  private failures = 0;
  /** When the rate allows the next batch. */
  private dueAtMs: number;

  constructor(options: SenderOptions, deps: { readonly clock: Clock; readonly send: SendLines }) {
    this.options = options;
    this.send = deps.send;
    this.clock = deps.clock;
    this.dueAtMs = deps.clock.nowMs();
  }

  /** Resolves when everything was sent, or nothing more is wanted. `endOf` is asked once the queue is drained. */
  async run(queue: EntryQueue, endOf: () => End, signal: AbortSignal): Promise<void> {
    // The first call says that the request has arrived.
    let isWanted = await this.deliver([], undefined, signal);
    while (isWanted) {
      const entries = await queue.take(everyMs, signal);
      const end = queue.isDrained ? endOf() : undefined;
      isWanted = (await this.deliver(entries, end, signal)) && end === undefined;
      if (isWanted) await this.pace(entries, signal);
    }
  }

  /** A last word, for a request that ends in another way. */
  async end(end: End, signal: AbortSignal): Promise<void> {
    await this.deliver([], end, signal);
  }

  private async deliver(
    entries: readonly Entry[],
    end: End | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const linesBefore = this.linesSent;
    this.linesSent += BigInt(entries.filter(({ isNote }) => !isNote).length);
    try {
      const request = { ...this.options, linesBefore, entries: [...entries], ...(end && { end }) };
      const { wanted } = await this.send(request, signal);
      this.failures = 0;
      return wanted;
    } catch {
      signal.throwIfAborted();
      this.failures += 1;
      if (this.failures >= failuresMax) return false;
      await sleep(this.clock, retryMs, signal);
      return true;
    }
  }

  private async pace(entries: readonly Entry[], signal: AbortSignal): Promise<void> {
    const bytes = entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
    const costMs = 1_000 * Math.max(entries.length / linesPerSecondMax, bytes / bytesPerSecondMax);
    const nowMs = this.clock.nowMs();
    this.dueAtMs = Math.max(this.dueAtMs, nowMs) + costMs;
    await sleep(this.clock, entries.length === 0 ? 0 : Math.max(gatherMs, this.dueAtMs - nowMs), signal);
  }
}
