// Ends a stream whose next message has begun but does not become whole. Pings prove only the connection: a message that
// arrives byte by byte would keep a stream "open" for hours, with every later change waiting behind it.
//
// - Only the time in which krane waits for bytes of an unfinished message counts. A slow reader does not end a stream,
//   and neither does silence between two messages.
// - PING and WINDOW_UPDATE frames are no part of a message, so they change nothing here.
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";

export interface ProgressOptions {
  /** The longest wait for the rest of a message. */
  readonly messageTimeoutMs: number;
  readonly clock: Clock;
}

/** Passes the bytes of a Connect stream on as they are. */
export async function* requireProgress(
  body: AsyncIterable<Uint8Array>,
  options: ProgressOptions,
): AsyncIterable<Uint8Array> {
  const { clock, messageTimeoutMs } = options;
  const chunks = body[Symbol.asyncIterator]();
  const scan = new EnvelopeScan();
  let waitedMs = 0;
  try {
    for (;;) {
      const startedMs = clock.nowMs();
      const next = scan.isInMessage
        ? await within(chunks.next(), messageTimeoutMs - waitedMs, options)
        : await chunks.next();
      if (next.done === true) return;
      const wasInMessage = scan.isInMessage;
      const hasEnded = scan.take(next.value);
      if (hasEnded) waitedMs = 0;
      else if (wasInMessage) waitedMs += clock.nowMs() - startedMs;
      yield next.value;
    }
  } finally {
    // The reader may stop early. Not awaited: after a timeout, the read that is under way ends only with the stream.
    chunks.return?.().catch(() => undefined);
  }
}

function within<T>(
  chunk: Promise<T>,
  leftMs: number,
  { clock, messageTimeoutMs }: ProgressOptions,
): Promise<T> {
  // After a timeout it rejects when the stream is reset.
  chunk.catch(() => undefined);
  return new Promise((resolve, reject) => {
    const reason = `bytes arrived, but no whole message within ${messageTimeoutMs / 1_000} s`;
    const timer = clock.setTimer(leftMs, () => reject(new ConnectError(reason, Code.DeadlineExceeded)));
    chunk.finally(() => timer.cancel()).then(resolve, reject);
  });
}

// Each message follows a header of five bytes: flags, and the length in four.
const headerBytes = 5;
const lengthOffset = 1;

/** Finds the boundaries of messages in the bytes of a Connect stream. */
export class EnvelopeScan {
  private readonly header = Buffer.alloc(headerBytes);
  /** How much of the next header is known; 0 between two messages. */
  private headerFilled = 0;
  /** How much of the current message is missing. */
  private missing = 0;

  /** Whether the first byte of a message was taken, but not its last. */
  get isInMessage(): boolean {
    return this.headerFilled > 0 || this.missing > 0;
  }

  /** Takes the next bytes; returns whether a message ended in them. */
  take(bytes: Uint8Array): boolean {
    let hasEnded = false;
    let offset = 0;
    while (offset < bytes.byteLength) {
      if (this.missing > 0) {
        const taken = Math.min(this.missing, bytes.byteLength - offset);
        this.missing -= taken;
        offset += taken;
        hasEnded ||= this.missing === 0;
        continue;
      }
      const taken = bytes.subarray(offset, offset + headerBytes - this.headerFilled);
      this.header.set(taken, this.headerFilled);
      this.headerFilled += taken.byteLength;
      offset += taken.byteLength;
      if (this.headerFilled < headerBytes) continue;
      this.headerFilled = 0;
      this.missing = this.header.readUInt32BE(lengthOffset);
      hasEnded ||= this.missing === 0;
    }
    return hasEnded;
  }
}
