// Limits the open streams of one kind, because each holds memory for as long as its client stays (K10). Optionally, each
// address or caller gets only a share of them, and each stream has a maximum duration.
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { linkSignals } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock } from "../concurrency/clock.ts";
import { peerAddress } from "./call-admission.ts";

export interface StreamPlacesOptions {
  readonly streamsMax: number;
  /** For one holder, by default the client's address. Default: no limit per holder. */
  readonly perHolderMax?: number;
  /** Default: until the client disconnects. */
  readonly lifetimeMs?: number;
}

export class StreamPlaces {
  private readonly options: Required<StreamPlacesOptions>;
  private readonly clock: Clock;
  private readonly byHolder = new Map<string, number>();
  private streams = 0;

  constructor(options: StreamPlacesOptions, deps: { readonly clock: Clock }) {
    const { streamsMax } = options;
    this.options = { perHolderMax: streamsMax, lifetimeMs: Number.POSITIVE_INFINITY, ...options };
    this.clock = deps.clock;
  }

  /** Passes the stream on, and counts it as open until it ends, its time is over or the client disconnects. */
  async *hold<T>(
    stream: AsyncIterable<T>,
    { signal, values }: Pick<HandlerContext, "signal" | "values">,
    holder = values.get(peerAddress),
  ): AsyncGenerator<T> {
    const leave = this.enter(holder);
    const linked = linkSignals(signal);
    const { lifetimeMs } = this.options;
    const timer = Number.isFinite(lifetimeMs)
      ? this.clock.setTimer(lifetimeMs, () => linked.abort(timeOver()))
      : undefined;
    // When a client disconnects in the middle of a message, nothing else ends the stream.
    const stopListening = onAbort(linked.signal, () => {
      timer?.cancel();
      leave();
    });
    try {
      yield* untilAborted(stream, linked.signal);
    } finally {
      timer?.cancel();
      stopListening();
      linked.release();
      leave();
    }
  }

  private enter(holder: string): () => void {
    const { streamsMax, perHolderMax } = this.options;
    const ofHolder = this.byHolder.get(holder) ?? 0;
    if (this.streams >= streamsMax || ofHolder >= perHolderMax)
      throw new ConnectError("too many open streams; try again later", Code.ResourceExhausted);
    this.streams += 1;
    this.byHolder.set(holder, ofHolder + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.streams -= 1;
      const left = (this.byHolder.get(holder) ?? 0) - 1;
      if (left > 0) this.byHolder.set(holder, left);
      else this.byHolder.delete(holder);
    };
  }
}

function timeOver(): ConnectError {
  return new ConnectError("the stream reached its maximum duration; open a new one", Code.DeadlineExceeded);
}

/** Works even if the stream ignores the signal, as one does that waits for its client. */
async function* untilAborted<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = stream[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await unlessAborted(() => iterator.next(), signal);
      if (done === true) return;
      yield value;
    }
  } finally {
    // Not awaited: it resolves when the stream stops waiting, which may be never.
    iterator.return?.()?.catch(() => undefined);
  }
}

function unlessAborted<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stopListening = onAbort(signal, () => reject(signal.reason));
    work().then(resolve, reject).finally(stopListening);
  });
}
