// So many streams of one kind at the same time, and no further ones: each holds memory for as long as its
// client likes (K10).
import { Code, ConnectError } from "@connectrpc/connect";
import { onAbort } from "../concurrency/abort-listener.ts";

export class StreamPlaces {
  private readonly streamsMax: number;
  private streams = 0;

  constructor(streamsMax: number) {
    this.streamsMax = streamsMax;
  }

  /** The stream in a place of its own, which is free again when it ends or the signal aborts. */
  async *hold<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
    if (this.streams >= this.streamsMax)
      throw new ConnectError(`${this.streamsMax} clients are watching already`, Code.ResourceExhausted);
    this.streams += 1;
    let isHeld = true;
    const leave = () => {
      if (isHeld) this.streams -= 1;
      isHeld = false;
    };
    // A client that is gone may leave the stream in the middle of a message, and nobody ends it then.
    const stopListening = onAbort(signal, leave);
    try {
      yield* stream;
    } finally {
      stopListening();
      leave();
    }
  }
}
