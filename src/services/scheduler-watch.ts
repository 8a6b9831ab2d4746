// What a client of Watch hears: every object once, then each that looks different from before. What waits
// for a slow client is keys, each once, so it is bounded by the number of objects and not by the rate of
// their changes; a client that was slow hears how things are now and not how they came to be (K10).
import { equals } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { linkSignals } from "../concurrency/abort.ts";
import { type State, StateSchema } from "../gen/krane/v1/scheduler_pb.ts";
import { changesOf } from "./latest-changes.ts";
import { goneState } from "./scheduler-messages.ts";

export interface StateSource {
  keys(): Iterable<string>;
  /** Undefined where there is nothing. */
  get(key: string): State | undefined;
  subscribe(listener: (key: string) => void): () => void;
  /** Aborts when nothing more will be seen. */
  readonly ending: AbortSignal;
}

/** Ends with the signal, and with `unavailable` when the sources end. */
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
  private readonly told = new Map<string, State>();

  constructor(source: StateSource) {
    this.source = source;
  }

  /** From here on every change is kept in mind, and everything that is there already counts as one. */
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
    const before = this.told.get(key);
    const now = this.source.get(key);
    if (now === undefined) {
      this.told.delete(key);
      return before && goneState(before);
    }
    if (before !== undefined && equals(StateSchema, before, now)) return undefined;
    this.told.set(key, now);
    return now;
  }
}
