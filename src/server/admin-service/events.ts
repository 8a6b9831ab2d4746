// The calls that read history, and the stream that follows it.
import { create } from "@bufbuild/protobuf";
import { linkSignals } from "../../concurrency/abort.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import {
  type Event,
  EventSchema,
  type ListEventsRequest,
  type ObjectKind,
  type WatchEventsRequest,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { HistoryQuery, NumberedEntry, Store } from "../store.ts";
import { checked } from "./bad-request.ts";
import { parseHistoryKind, parseRegion, refOf } from "./object-refs.ts";

const limitDefault = 100;
const limitMax = 1_000;
/** Reports are not announced as changes are, so they are polled. */
const pollEveryMs = 1_000;
const batchMax = 200;

export async function listEvents(store: Store, request: ListEventsRequest): Promise<{ events: Event[] }> {
  const { region, query } = parseQuery(request);
  const limit = Math.min(request.limit === 0 ? limitDefault : request.limit, limitMax);
  const entries = await store.history(region, { ...query, changesOnly: request.changesOnly, limit });
  return { events: entries.map((entry) => eventOf(region, entry)) };
}

export interface EventFeedDeps {
  readonly store: Store;
  readonly clock: Clock;
}

/** A message on a watch; the first has no event. */
export interface WatchAnswer {
  readonly event?: Event;
  /** Where a new stream can continue without missing anything after this message. */
  readonly position: bigint;
}

/** Ends with the signal; without an error if the watch reached its maximum duration. */
export async function* eventFeed(
  { store, clock }: EventFeedDeps,
  request: WatchEventsRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchAnswer> {
  const { region, query } = parseQuery(request);
  const answer = (entry: NumberedEntry) => ({ event: eventOf(region, entry), position: entry.number });
  const { newest: start, backlog } =
    request.after === undefined
      ? await beginning(store, region, { ...query, limit: Math.min(request.backlog, limitMax) })
      : { newest: request.after, backlog: [] };
  const [first] = backlog;
  // Sent first, so that a stream lost before anything happens can also be continued.
  yield { position: first === undefined ? start : first.number - 1n };
  yield* backlog.map(answer);
  let cursor = start;
  while (!signal.aborted) {
    const { entries, newest } = await store.historySince(region, cursor, { ...query, limit: batchMax });
    for (const entry of entries) {
      yield answer(entry);
      cursor = entry.number;
    }
    if (entries.length === batchMax) continue;
    // Also lower: the history of a restored database starts again at a lower number.
    cursor = newest;
    await untilNews(store, clock, region, signal);
  }
}

/** Entries added between the two reads are left to the watch; a backlog above the limit keeps its newest entries. */
async function beginning(store: Store, region: string, query: HistoryQuery) {
  const { newest } = await store.historySince(region, 0n, { ...query, limit: 0 });
  const entries = await store.history(region, query);
  return { newest, backlog: entries.filter(({ number }) => number <= newest).reverse() };
}

/** Resolves with the next change of the region, or after a second; at the latest when the signal aborts. */
async function untilNews(store: Store, clock: Clock, region: string, signal: AbortSignal): Promise<void> {
  const linked = linkSignals(signal);
  try {
    const { counter } = await store.changesSince(region, "policy", 0n, 0);
    const waits = [
      store.waitForChange(region, counter, linked.signal),
      sleep(clock, pollEveryMs, linked.signal),
    ];
    await Promise.race(waits.map((wait) => wait.catch(() => undefined)));
  } finally {
    linked.abort(new Error("no longer waited for"));
    linked.release();
  }
}

interface EventQuery {
  readonly region: string;
  readonly kind: ObjectKind;
  readonly id: string;
}

function parseQuery({ region, kind, id }: EventQuery): {
  region: string;
  query: Omit<HistoryQuery, "limit">;
} {
  return checked((refuse) => {
    const known = parseHistoryKind("kind", kind, refuse);
    return {
      region: parseRegion(region, refuse),
      query: { ...(known !== undefined && { kind: known }), ...(id !== "" && { id }) },
    };
  });
}

function eventOf(region: string, entry: NumberedEntry): Event {
  const { kind, id, atMs, by, event, version, outcome, number } = entry;
  const ref = refOf({ region, kind, id });
  return create(EventSchema, {
    ref,
    atMs: BigInt(Math.trunc(atMs)),
    by,
    event,
    version,
    outcome,
    entry: number,
  });
}
