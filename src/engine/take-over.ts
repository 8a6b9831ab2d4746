// What a controller does when its process becomes the leader. As a standby it has kept its watches, its stream and its
// desired state up to date, resync included, but has settled and written nothing; another process has.
//
// - Orders become those on record, because only the leader takes orders.
// - Every key is looked at once. Keys that are in sync cost nothing (K11).
// - Everything is reported once, because the last report may be that of the previous leader.
// - What the previous leader held back stays held: a standby resyncs too, and the deletion budget counts as used up.
import { linkSignals } from "../concurrency/abort.ts";
import type { WorkQueue } from "../concurrency/work-queue.ts";
import type { Leadership, Term } from "../kube/leadership.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { DeletionGuard } from "./deletion-guard.ts";
import type { DesiredMessage } from "./desired-message.ts";
import type { DesiredStore } from "./desired-store.ts";
import type { KeptOrders } from "./kept-orders.ts";
import type { OrderRecord } from "./order-records.ts";
import type { Reporter } from "./reporter.ts";

export interface OrderParts<Spec> {
  readonly store: DesiredStore<Spec>;
  readonly kept: KeptOrders<Spec>;
  readonly queue: Pick<WorkQueue, "add">;
  /** Undefined if the record is not one of this controller. */
  read(record: OrderRecord): DesiredMessage<Spec> | undefined;
  /** Called before a restored key is enqueued. */
  prepare(key: string): void;
}

/** Makes the recorded orders those in force. Returns whether any of those before are not. */
export async function restoreOrders<Spec>(
  { store, kept, queue, read, prepare }: OrderParts<Spec>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const loaded = await kept.load(timeoutMs, signal);
  const dropped = kept.dropOutdated(loaded).filter((key) => store.get(key)?.origin === "scheduler");
  for (const key of dropped) store.remove(key);
  for (const record of loaded) {
    if (kept.isTaken(record)) continue;
    const message = read(record);
    if (message === undefined) continue;
    const isInForce = store.restore(message) === "changed";
    kept.restored(record, isInForce);
    if (isInForce) prepare(record.key);
    queue.add(record.key);
  }
  return dropped.length > 0;
}

export interface TakeOverParts<Spec> extends OrderParts<Spec> {
  readonly definition: Pick<ControllerDefinition<Spec>, "managed" | "companionKeys">;
  readonly guard: Pick<DeletionGuard, "takeOver">;
  readonly reporter: Pick<Reporter, "changed" | "reportAgain">;
  /** Reads the desired state again from version 0. */
  replay(): void;
}

export async function takeOver<Spec>(
  parts: TakeOverParts<Spec>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { store, definition, queue, guard, reporter } = parts;
  guard.takeOver();
  // What the control plane wants instead of a dropped order is no longer in the store.
  if (await restoreOrders(parts, timeoutMs, signal)) parts.replay();
  const keys = new Set([...store.entries()].map(({ key }) => key));
  for (const { key } of definition.managed()) keys.add(key);
  reporter.reportAgain();
  for (const key of keys) {
    queue.add(key, "resync");
    reporter.changed(key);
  }
  for (const key of definition.companionKeys()) queue.add(key, "resync");
}

/** Runs the work once in each term, until the signal aborts. Between terms nothing of it runs. */
export async function inEachTerm(
  leadership: Leadership,
  work: (term: Term, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const term = await leadership.whenLeading(signal);
    const linked = linkSignals(signal, term.signal);
    try {
      await work(term, linked.signal);
    } catch (error) {
      if (!term.signal.aborted) throw error;
    } finally {
      linked.release();
    }
    signal.throwIfAborted();
  }
}
