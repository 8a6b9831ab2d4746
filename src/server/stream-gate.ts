// The open streams of a control plane, as one thing that can be cut, held and closed.
// A stream that is ended from here ends with `unavailable` and a hint when to come
// back, so that the agents of a whole fleet know that it was not their fault.
import { Code, ConnectError } from "@connectrpc/connect";
import { linkSignals } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import { ChangeSignal } from "./change-signal.ts";
import type { StreamAdmission } from "./stream-admission.ts";

const retryAfterSeconds = 1;

export class StreamGate {
  private current = new AbortController();
  private readonly resumed = new ChangeSignal();
  private paused = false;
  private closed = false;
  private readonly open = new Set<AbortSignal>();
  private readonly admission: StreamAdmission | undefined;

  constructor(admission?: StreamAdmission) {
    this.admission = admission;
  }

  /** How many streams are open. */
  get openCount(): number {
    return this.open.size;
  }

  /**
   * Runs a stream under this gate until it ends, its client is gone or the gate ends it.
   * The stream is asked for its next message only when the one before was taken, so
   * what a slow client makes the server hold is one message and the client's window.
   */
  async *guard<T>(
    stream: (signal: AbortSignal) => AsyncIterable<T>,
    signal: AbortSignal,
  ): AsyncGenerator<T, void> {
    const linked = linkSignals(signal, this.current.signal);
    linked.signal.throwIfAborted();
    this.admission?.admit(this.open.size);
    this.open.add(linked.signal);
    // A client within the process that cancels between two messages never asks again,
    // so that nothing below this line runs.
    onAbort(linked.signal, () => this.open.delete(linked.signal));
    try {
      for await (const message of stream(linked.signal)) {
        await this.passable(linked.signal);
        yield message;
      }
    } finally {
      this.open.delete(linked.signal);
      linked.release();
    }
  }

  /** Ends every open stream. New ones are let in. */
  cut(): void {
    const ended = this.current;
    if (!this.closed) this.current = new AbortController();
    ended.abort(ending("the stream was cut"));
  }

  /** Holds back every message of every stream, open and new, while connections stay up. */
  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.resumed.wakeAll();
  }

  /** Ends every open stream, and every later one at once. */
  close(): void {
    this.closed = true;
    this.current.abort(ending("the control plane is shutting down"));
  }

  private async passable(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (this.paused) await this.resumed.wait(signal);
  }
}

function ending(message: string): ConnectError {
  return new ConnectError(message, Code.Unavailable, { "retry-after": `${retryAfterSeconds}` });
}
