// So many streams of one kind at the same time, and no further ones: each holds memory for as long as its
// client likes (K10). Where many may open one, each address or caller gets a part of the places, and a stream a
// time.
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { linkSignals } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock } from "../concurrency/clock.ts";
import { peerAddress } from "./call-admission.ts";

export interface StreamPlacesOptions {
  readonly streamsMax: number;
  /** Of one holder, which is the address of the client unless `hold` is told otherwise. Default: all. */
  readonly perHolderMax?: number;
  /** Default: until the client leaves. */
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

  /** The stream in a place of its own, which is free again when it ends, its time is over or its client gone. */
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
    // A client that is gone may leave the stream in the middle of a message, and nobody ends it then.
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
      throw new ConnectError("as many streams as there may be are open already", Code.ResourceExhausted);
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
  return new ConnectError("the time of a stream is over; open another", Code.DeadlineExceeded);
}

/** Also where the stream does not listen to the signal, as one that waits for its client does not. */
async function* untilAborted<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = stream[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await unlessAborted(() => iterator.next(), signal);
      if (done === true) return;
      yield value;
    }
  } finally {
    // Not waited for: it ends when the stream stops waiting, which may be never.
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
