// Controls the open streams of a control plane as a group: cut, pause and close. A stream
// ended from here fails with `unavailable` and a retry hint, so that agents know that it
// was not their fault.
import { Code, ConnectError } from "@connectrpc/connect";
import { linkSignals } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import { ChangeSignal } from "../concurrency/change-signal.ts";
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

  /** The number of open streams. */
  get openCount(): number {
    return this.open.size;
  }

  /**
   * Runs a stream under this gate until it ends, its client is gone or the gate ends it.
   * The next message is requested only after the previous one was taken, so a slow client
   * makes the server hold at most one message and the client's window.
   */
  async *guard<T>(
    stream: (signal: AbortSignal) => AsyncIterable<T>,
    signal: AbortSignal,
  ): AsyncGenerator<T, void> {
    const linked = linkSignals(signal, this.current.signal);
    linked.signal.throwIfAborted();
    this.admission?.admit(this.open.size);
    this.open.add(linked.signal);
    // An in-process client that cancels between two messages never asks again, so nothing
    // below this line would run.
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

  /** Ends every open stream. New ones are accepted. */
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
