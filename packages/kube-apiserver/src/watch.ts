// Serves one watch: the initial objects, or the changes since a resourceVersion, then new changes.
import type { Scope } from "./core.ts";
import { tooLarge } from "./list-pages.ts";
import { type ListQuery, parseWatchRevision } from "./query.ts";
import { parseForm, Representation } from "./representation.ts";
import type { StreamResponse } from "./request.ts";
import { parseSelection, type Selection } from "./selection.ts";
import { expired, statusBody } from "./status-error.ts";
import { type Change, ExpiredError, isSame, type StoredObject } from "./store.ts";

const queueMax = 10_000;
const compactAfter = 1_024;
const bookmarkPeriodMs = 60_000;
const lastBookmarkMs = 2_000;
// Without a timeout, a watch ends after a random time of 30 to 60 minutes.
const defaultTimeoutSeconds = 1800;

export function openWatch(scope: Scope, query: ListQuery): StreamResponse {
  const { core } = scope;
  const watch = new Watch(scope, query);
  const closing: (() => void)[] = [];
  const close = (): void => {
    for (const step of closing.splice(0)) step();
    watch.queue.end();
  };
  watch.start();
  watch.queue.limit(queueMax);
  if (!watch.queue.isEnded) {
    closing.push(core.store.subscribe((change) => watch.see(change)));
    closing.push(core.watches.add({ path: scope.request.path, close }));
    const seconds = query.timeoutSeconds || defaultTimeoutSeconds * (1 + core.random.next());
    const timer = core.clock.setTimer(seconds * 1000, close);
    closing.push(() => timer.cancel());
    if (query.bookmarks) {
      closing.push(repeat(scope, () => watch.bookmark()));
      // The last bookmark comes shortly before the end, so that the next watch repeats nothing.
      const lastMs = seconds * 1000 - lastBookmarkMs;
      const last = lastMs > 0 ? core.clock.setTimer(lastMs, () => watch.bookmark()) : undefined;
      closing.push(() => last?.cancel());
    }
  }
  return { kind: "stream", values: closedAfter(watch.queue, close), close };
}

function repeat({ core }: Scope, step: () => void): () => void {
  let timer = core.clock.setTimer(bookmarkPeriodMs, function again() {
    step();
    timer = core.clock.setTimer(bookmarkPeriodMs, again);
  });
  return () => timer.cancel();
}

/** Frees the timers and the subscription when the watcher leaves. */
async function* closedAfter(queue: WatchQueue, close: () => void): AsyncGenerator<unknown> {
  try {
    yield* queue;
  } finally {
    close();
  }
}

class Watch {
  readonly queue = new WatchQueue();
  private readonly scope: Scope;
  private readonly query: ListQuery;
  private readonly selects: Selection;
  private readonly representation: Representation;
  private sent = 0;

  constructor(scope: Scope, query: ListQuery) {
    const { core, resource, request } = scope;
    this.scope = scope;
    this.query = query;
    this.selects = parseSelection(scope, query);
    this.representation = new Representation(resource, parseForm(request.accept), core.clock.wallMs());
  }

  start(): void {
    const { core, resource, namespace } = this.scope;
    const revision = parseWatchRevision(this.query.resourceVersion);
    const fromNow = revision === undefined || revision === 0;
    const initial = this.query.sendInitialEvents;
    if (initial === true && revision !== undefined && revision > core.store.revision) {
      this.queue.push({ type: "ERROR", object: statusBody(tooLarge(revision, core.store.revision)) });
      this.queue.end();
      return;
    }
    if (initial === true || (fromNow && initial === undefined)) {
      for (const object of core.store.list(resource.kind, namespace)) {
        if (this.selects(object)) this.send("ADDED", object);
      }
      if (initial === true && this.query.bookmarks) {
        this.queue.push(this.representation.bookmark(core.store.revision, true));
      }
    } else if (!fromNow) this.replay(revision);
  }

  see(change: Change): void {
    const { resource, namespace, core, request } = this.scope;
    if (!isSame(change.key, resource.kind)) return;
    if (namespace !== "" && change.key.namespace !== namespace) return;
    const was = change.previous !== undefined && this.selects(change.previous);
    const is = !change.removed && this.selects(change.object);
    if (!was && !is) return;
    if (core.watches.takesDrop(request.path)) return;
    if (is) this.send(was ? "MODIFIED" : "ADDED", change.object);
    // An object that no longer matches is sent as DELETED, with its last matching state and the new version.
    else if (change.previous !== undefined) this.send("DELETED", lastState(change));
  }

  bookmark(): void {
    const { store, watches } = this.scope.core;
    if (watches.bookmarks) this.queue.push(this.representation.bookmark(store.revision, false));
  }

  private replay(revision: number): void {
    const { store } = this.scope.core;
    // A revision in the future: changes are sent as they happen.
    if (revision >= store.revision) return;
    try {
      for (const change of store.changesAfter(revision)) this.see(change);
    } catch (error) {
      if (!(error instanceof ExpiredError)) throw error;
      const message = `too old resource version: ${revision} (${error.compacted + 1})`;
      this.queue.push({ type: "ERROR", object: statusBody(expired(message)) });
      this.queue.end();
    }
  }

  private send(type: string, object: StoredObject): void {
    this.queue.push(this.representation.event(type, object, this.sent === 0));
    this.sent++;
  }
}

function lastState({ object, previous }: Change): StoredObject {
  const resourceVersion = object.metadata["resourceVersion"] ?? "";
  return previous === undefined
    ? object
    : { ...previous, metadata: { ...previous.metadata, resourceVersion } };
}

/**
 * A bounded queue of events for one watcher. A watcher that falls behind is disconnected, and can resume. What it starts
 * with does not count: no watcher could ever have read that before it is complete.
 */
class WatchQueue implements AsyncIterable<unknown> {
  private waiting: unknown[] = [];
  /** How many of them were taken already. Shifting a long array would move all of it for each event. */
  private taken = 0;
  private sizeMax = Number.POSITIVE_INFINITY;
  private wake: (() => void) | undefined;
  private ended = false;

  /** From now on it takes this many events more than it has. */
  limit(size: number): void {
    this.sizeMax = this.size + size;
  }

  private get size(): number {
    return this.waiting.length - this.taken;
  }

  get isEnded(): boolean {
    return this.ended;
  }

  push(event: unknown): void {
    if (this.ended) return;
    if (this.size >= this.sizeMax) {
      this.end();
      return;
    }
    this.waiting.push(event);
    this.notify();
  }

  /** Events pushed before are still delivered. */
  end(): void {
    this.ended = true;
    this.notify();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<unknown> {
    try {
      for (;;) {
        const event = this.take();
        if (event !== undefined) yield event;
        else if (this.ended) return;
        else await new Promise<void>((resolve) => (this.wake = resolve));
      }
    } finally {
      this.end();
    }
  }

  private take(): unknown {
    if (this.size === 0) return undefined;
    const event = this.waiting[this.taken];
    this.waiting[this.taken] = undefined;
    this.taken += 1;
    if (this.taken >= compactAfter && this.taken * 2 >= this.waiting.length) {
      this.waiting = this.waiting.slice(this.taken);
      this.taken = 0;
    }
    return event;
  }

  private notify(): void {
    this.wake?.();
    this.wake = undefined;
  }
}
