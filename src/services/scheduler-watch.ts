// Streams object states to a client of Watch: first every object, then each one that changed. Only keys wait for a slow
// client, each at most once, so memory is bounded by the number of objects and not by the rate of changes. A slow client
// gets the current states and misses the ones in between (K10).
import { equals } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { linkSignals } from "../concurrency/abort.ts";
import { type State, StateSchema } from "../gen/krane/v1/scheduler_pb.ts";
import { changesOf } from "./latest-changes.ts";
import { goneState } from "./scheduler-messages.ts";

export interface StateSource {
  keys(): Iterable<string>;
  /** Undefined when the object does not exist. */
  get(key: string): State | undefined;
  subscribe(listener: (key: string) => void): () => void;
  /** Aborts when the source will not change any more. */
  readonly ending: AbortSignal;
}

/** Ends when the signal aborts, and throws `unavailable` when the sources end. */
export async function* watchStates(
  sources: readonly StateSource[],
  signal: AbortSignal,
): AsyncGenerator<State> {
  const clients = sources.map((source) => new SourceReader(source));
  const endings = sources.map(({ ending }) => ending);
  const linked = linkSignals(signal, ...endings);
  const changing = {
    subscribe(listener: () => void) {
      const stops = clients.map((client) => client.subscribe(listener));
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
  try {
    for await (const _ of changesOf(changing, linked.signal))
      for (const client of clients) for (const state of client.news()) yield state;
  } finally {
    linked.release();
  }
  if (!signal.aborted) throw new ConnectError("krane is stopping", Code.Unavailable);
}

class SourceReader {
  private readonly source: StateSource;
  private readonly dirty = new Set<string>();
  private readonly sent = new Map<string, State>();

  constructor(source: StateSource) {
    this.source = source;
  }

  /** Marks all existing objects as changed, and records changes from now on. */
  subscribe(listener: () => void): () => void {
    const unsubscribe = this.source.subscribe((key) => {
      this.dirty.add(key);
      listener();
    });
    for (const key of this.source.keys()) this.dirty.add(key);
    return unsubscribe;
  }

  *news(): Iterable<State> {
    for (const key of this.dirty) {
      this.dirty.delete(key);
      const state = this.stateOf(key);
      if (state !== undefined) yield state;
    }
  }

  private stateOf(key: string): State | undefined {
    const before = this.sent.get(key);
    const now = this.source.get(key);
    if (now === undefined) {
      this.sent.delete(key);
      return before && goneState(before);
    }
    if (before !== undefined && equals(StateSchema, before, now)) return undefined;
    this.sent.set(key, now);
    return now;
  }
}
