// Limits the bytes of complete responses that clients on one port have not read yet (K10). Above the limit
// the oldest of them are dropped, with their connections. A client that reads is never among them, so a
// thousand connections that ask and do not read cannot lock it out. A response that exceeds the limit on its
// own is dropped alone: otherwise it would push out all others first, and be dropped all the same.
import type { Writable } from "node:stream";
import type { Timer } from "../concurrency/clock.ts";

interface Waiting {
  readonly bytes: number;
  readonly cut: () => void;
}

export class UnreadResponses {
  private readonly bytesMax: number;
  /** In the order in which they were complete. */
  private readonly waiting = new Map<Writable, Waiting>();
  private bytes = 0;

  constructor(options: { readonly answerBytesMax: number }) {
    this.bytesMax = options.answerBytesMax;
  }

  /** To be called when the answer has ended; `cut` gives it up, and everything that it holds. */
  add(answer: Writable, cut: () => void): void {
    const bytes = answer.writableLength;
    if (bytes === 0 || answer.destroyed) return;
    if (bytes > this.bytesMax) {
      cut();
      return;
    }
    this.waiting.set(answer, { bytes, cut });
    this.bytes += bytes;
    answer.once("close", () => this.forget(answer));
    for (const [oldest, each] of this.waiting) {
      if (this.bytes <= this.bytesMax) return;
      this.forget(oldest);
      each.cut();
    }
  }

  private forget(answer: Writable): void {
    this.bytes -= this.waiting.get(answer)?.bytes ?? 0;
    this.waiting.delete(answer);
  }
}

/** Calls back once, when the handler has called `end()`. Node has an event only for when the client has read it all. */
export function onceEnded(answer: Writable, listener: () => void): void {
  const { end } = answer;
  answer.end = (...args: unknown[]) => {
    answer.end = end;
    const ended = Reflect.apply(end, answer, args);
    listener();
    return ended;
  };
}

/** Runs a timer while the client does not read what the handler has written, until the handler ends the response. */
export function limitStalls(answer: Writable, startTimer: () => Timer): void {
  const { write } = answer;
  let timer: Timer | undefined;
  const stopTimer = () => {
    timer?.cancel();
    timer = undefined;
  };
  answer.write = (...args: unknown[]) => {
    const isTaken = Reflect.apply(write, answer, args);
    if (!isTaken && !answer.destroyed) timer ??= startTimer();
    return isTaken;
  };
  answer.on("drain", stopTimer);
  answer.once("close", stopTimer);
  onceEnded(answer, stopTimer);
}
