// Limits the bytes of complete responses that clients on one port have not read yet (K10). Above the limit
// the oldest of them are dropped, with their connections. A client that reads is never among them, so a
// thousand connections that send requests and do not read cannot lock it out. A response that exceeds the limit on its
// own is dropped alone: otherwise it would push out all others first, and then be dropped anyway.
import type { Writable } from "node:stream";
import type { Timer } from "../concurrency/clock.ts";

interface Waiting {
  readonly bytes: number;
  readonly cut: () => void;
}

export class UnreadResponses {
  private readonly bytesMax: number;
  /** In the order of completion. */
  private readonly waiting = new Map<Writable, Waiting>();
  private bytes = 0;

  constructor(options: { readonly responseBytesMax: number }) {
    this.bytesMax = options.responseBytesMax;
  }

  /** Call it when the handler has ended the response. `cut` drops the response and frees its memory. */
  add(response: Writable, cut: () => void): void {
    const bytes = response.writableLength;
    if (bytes === 0 || response.destroyed) return;
    if (bytes > this.bytesMax) {
      cut();
      return;
    }
    this.waiting.set(response, { bytes, cut });
    this.bytes += bytes;
    response.once("close", () => this.forget(response));
    for (const [oldest, each] of this.waiting) {
      if (this.bytes <= this.bytesMax) return;
      this.forget(oldest);
      each.cut();
    }
  }

  private forget(response: Writable): void {
    this.bytes -= this.waiting.get(response)?.bytes ?? 0;
    this.waiting.delete(response);
  }
}

/** Calls back once, when the handler has called `end()`. Node has an event only for when the client has read it all. */
export function onceEnded(response: Writable, listener: () => void): void {
  const { end } = response;
  response.end = (...args: unknown[]) => {
    response.end = end;
    const ended = Reflect.apply(end, response, args);
    listener();
    return ended;
  };
}

/** Runs a timer while the client does not read what the handler has written, until the handler ends the response. */
export function limitStalls(response: Writable, startTimer: () => Timer): void {
  const { write } = response;
  let timer: Timer | undefined;
  const stopTimer = () => {
    timer?.cancel();
    timer = undefined;
  };
  response.write = (...args: unknown[]) => {
    const isTaken = Reflect.apply(write, response, args);
    if (!isTaken && !response.destroyed) timer ??= startTimer();
    return isTaken;
  };
  response.on("drain", stopTimer);
  response.once("close", stopTimer);
  onceEnded(response, stopTimer);
}
