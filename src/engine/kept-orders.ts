// Keeps the records of orders in step with the store: a record exists exactly as long as its order is in force.
//
// - An order is recorded before the store takes it. If that fails, nothing changes.
// - A record is removed before its key is deleted or a newer version of the control plane is applied. Otherwise an agent
//   that takes over without having heard of either would bring the order back.
// - A failed write may still have reached the server. The key is then due: every reconcile of it calls settle(), which
//   corrects the record, until that succeeds.
// - The writes of one key are made one after another, in the order of the calls.
import { isAbort, linkSignals, withTimeout } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { WorkQueue } from "../concurrency/work-queue.ts";
import { KubeApiError } from "../kube/errors.ts";
import { classifyFailure, classifyProblems, isRefusal } from "./classify.ts";
import type { DeletionGuard } from "./deletion-guard.ts";
import type { DesiredStore } from "./desired-store.ts";
import type { OutcomeRecord } from "./object-status.ts";
import type { OrderRecord, OrderRecords, RecordOutcome } from "./order-records.ts";
import type { OrderWaits, ReadOrder } from "./orders.ts";
import type { OrderOutcome } from "./running-controller.ts";

export interface KeptOrdersDeps<Spec> {
  readonly store: DesiredStore<Spec>;
  readonly clock: Clock;
  /** Absent: orders end with the process. */
  readonly records?: OrderRecords | undefined;
}

export type TakeOutcome =
  | { readonly kind: "taken" }
  /** Nothing changed here. */
  | { readonly kind: "refused"; readonly reason: string; readonly mayBeRecorded?: true };

const loadAgainMs = 1_000;
// A caller waits a minute, and is then told that its order stays in force. By then, also after a turn of a reconcile, it is
// known whether the order is recorded.
const recordMaxMs = 25_000;

/** Without a record, the one that the key has is removed, up to this number. */
interface RecordWrite {
  readonly record: OrderRecord | undefined;
  readonly number: bigint;
  readonly untilMs: number;
}

export class KeptOrders<Spec> {
  private readonly deps: KeptOrdersDeps<Spec>;
  /** The orders that the store has taken. */
  private readonly taken = new Map<string, OrderRecord>();
  /** The highest number of the records that a key has, or may have. */
  private readonly written = new Map<string, bigint>();
  /** The keys whose record may not be that of the order in force. */
  private readonly unsure = new Set<string>();
  private readonly turns = new Map<string, Promise<unknown>>();
  private lastNumber = 0n;

  constructor(deps: KeptOrdersDeps<Spec>) {
    this.deps = deps;
  }

  /** Retries until the deadline, because the API server may be restarting. */
  async load(timeoutMs: number, signal: AbortSignal): Promise<readonly OrderRecord[]> {
    const { records, clock } = this.deps;
    if (records === undefined) return [];
    let failure: unknown;
    try {
      return await withTimeout(clock, timeoutMs, signal, async (waiting) => {
        for (;;) {
          try {
            return this.noteNumbers(await records.load(waiting));
          } catch (error) {
            if (!(error instanceof KubeApiError)) throw error;
            failure = error;
            await sleep(clock, loadAgainMs, waiting);
          }
        }
      });
    } catch (cause) {
      if (isAbort(cause, signal) || failure === undefined) throw cause;
      const reason = failure instanceof Error ? failure.message : String(failure);
      throw new Error(`cannot read the recorded orders: ${reason}`, { cause: failure });
    }
  }

  /** Whether this very record is the one of the order in force. */
  isTaken({ key, number }: OrderRecord): boolean {
    return this.taken.get(key)?.number === number;
  }

  /** Forgets the orders that are no longer on record, because another process replaced or removed them. Returns their keys. */
  dropOutdated(loaded: readonly OrderRecord[]): readonly string[] {
    if (this.deps.records === undefined) return [];
    const numbers = new Map(loaded.map(({ key, number }) => [key, number]));
    const outdated = [...this.taken].filter(([key, { number }]) => numbers.get(key) !== number);
    for (const [key] of outdated) {
      this.taken.delete(key);
      this.written.delete(key);
    }
    this.unsure.clear();
    return outdated.map(([key]) => key);
  }

  /** `isInForce`: the store has taken the order of this record. Otherwise the record is to be removed. */
  restored(record: OrderRecord, isInForce: boolean): void {
    const { key, number } = record;
    if (isInForce) this.taken.set(key, record);
    this.written.set(key, number);
  }

  /**
   * Records an order, or removes the record for a deletion; then the store takes it, and `onTaken` is called at once.
   * `read` is called when it is the order's turn. The order is refused if its record is not written in time.
   */
  take(
    key: string,
    read: () => ReadOrder<Spec>,
    onTaken: () => void,
    signal: AbortSignal,
  ): Promise<TakeOutcome> {
    const { store, clock } = this.deps;
    const untilMs = clock.nowMs() + recordMaxMs;
    return this.inTurn(key, async () => {
      const before = store.get(key);
      const { message, record } = read();
      const number = this.nextNumber();
      const numbered = record && { ...record, number };
      const refusal = await this.tryWrite(key, { record: numbered, number, untilMs }, signal);
      if (refusal !== undefined) return refusal;
      if (store.get(key) !== before) {
        this.unsure.add(key);
        return refused("the control plane changed it at the same time");
      }
      if (numbered === undefined || this.deps.records === undefined) this.taken.delete(key);
      else this.taken.set(key, numbered);
      this.unsure.delete(key);
      store.order(message);
      onTaken();
      return { kind: "taken" };
    });
  }

  /** Whether an order holds for the key, and no Delete or newer version has replaced it. */
  isInForce(key: string): boolean {
    return this.inForce(key) !== undefined;
  }

  /** Whether the record of the key has to be changed or removed. */
  isDue(key: string): boolean {
    return this.unsure.has(key) || (this.written.has(key) && this.inForce(key) === undefined);
  }

  /** Makes the record of the key that of the order in force, or removes it. */
  async settle(key: string, signal: AbortSignal): Promise<void> {
    await this.inTurn(key, async () => {
      if (!this.isDue(key)) return;
      const record = this.inForce(key);
      const untilMs = this.deps.clock.nowMs() + recordMaxMs;
      if (record === undefined) {
        // Not a newer record, which another process has written.
        const number = this.written.get(key) ?? 0n;
        await this.write(key, { record, number, untilMs }, signal);
        this.taken.delete(key);
      } else {
        const number = this.nextNumber();
        await this.write(key, { record: { ...record, number }, number, untilMs }, signal);
      }
      this.unsure.delete(key);
    });
  }

  /** Also of records that cannot be restored: the next order of that key must be newer. */
  private noteNumbers(loaded: readonly OrderRecord[]): readonly OrderRecord[] {
    for (const { number } of loaded) if (number > this.lastNumber) this.lastNumber = number;
    return loaded;
  }

  private inForce(key: string): OrderRecord | undefined {
    const entry = this.deps.store.get(key);
    return entry?.origin === "scheduler" && entry.want.kind !== "delete" ? this.taken.get(key) : undefined;
  }

  private async tryWrite(
    key: string,
    write: RecordWrite,
    signal: AbortSignal,
  ): Promise<TakeOutcome | undefined> {
    try {
      const outcome = await this.write(key, write, signal);
      return outcome === "done" ? undefined : refused("another krane has recorded a newer order for it");
    } catch (error) {
      this.unsure.add(key);
      const failure = isAbort(error, signal) ? undefined : classifyFailure(error);
      if (failure === undefined) throw error;
      const refusal = refused(`its record cannot be written: ${failure.reason}`);
      return isRefusal(error) ? refusal : { ...refusal, mayBeRecorded: true };
    }
  }

  private async write(
    key: string,
    { record, number, untilMs }: RecordWrite,
    signal: AbortSignal,
  ): Promise<RecordOutcome> {
    const { records, clock } = this.deps;
    if (records === undefined) return "done";
    const inTime = (work: (waiting: AbortSignal) => Promise<RecordOutcome>) =>
      withTimeout(clock, Math.max(0, untilMs - clock.nowMs()), signal, work);
    if (record === undefined) {
      const outcome = await inTime((waiting) => records.remove(key, number, waiting));
      this.written.delete(key);
      return outcome;
    }
    const before = this.written.get(key);
    // Before the call, because a call that fails may have written it.
    this.written.set(key, number);
    const outcome = await inTime((waiting) => records.put(record, waiting));
    if (outcome === "newer") this.noteWritten(key, before);
    return outcome;
  }

  private noteWritten(key: string, number: bigint | undefined): void {
    if (number === undefined) this.written.delete(key);
    else this.written.set(key, number);
  }

  /** Follows the wall clock, so that it also grows from one process to the next if there are no records. */
  private nextNumber(): bigint {
    const now = BigInt(Math.floor(this.deps.clock.wallMs()));
    this.lastNumber = now > this.lastNumber ? now : this.lastNumber + 1n;
    return this.lastNumber;
  }

  private async inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.turns.get(key);
    const turn = before === undefined ? work() : before.then(work, work);
    this.turns.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.turns.get(key) === turn) this.turns.delete(key);
    }
  }
}

function refused(reason: string) {
  return { kind: "refused", reason } as const;
}

export interface OrderParts<Spec> {
  readonly kept: KeptOrders<Spec>;
  readonly waits: OrderWaits;
  readonly store: Pick<DesiredStore<Spec>, "get">;
  readonly guard: Pick<DeletionGuard, "clear">;
  readonly queue: Pick<WorkQueue, "add" | "forget">;
  /** Aborts when the controller stops. */
  readonly stopping: AbortSignal;
}

/** Takes an order from a call the same way as a message from the stream; resolves with its outcome. */
export async function takeOrder<Spec>(
  read: () => ReadOrder<Spec>,
  { kept, waits, store, guard, queue, stopping }: OrderParts<Spec>,
  signal: AbortSignal,
): Promise<OrderOutcome> {
  const { key, want } = read().message;
  if (want.kind === "invalid") {
    const { reason, fieldPath } = classifyProblems(want.problems);
    return { outcome: "parked", reason, fieldPath, isInvalid: true };
  }
  const linked = linkSignals(signal, stopping);
  let done: Promise<OutcomeRecord> | undefined;
  const onTaken = () => {
    guard.clear(key);
    done = waits.wait(key, store.get(key)?.sequence ?? 0, linked.signal);
    queue.forget(key);
  };
  try {
    // The caller cannot cancel this: an order that is recorded must also be in force.
    const taking = kept.take(key, read, onTaken, stopping);
    // Also if it fails, because its record may have been written.
    const taken = await taking.finally(() => queue.add(key));
    if (taken.kind === "taken") return await (done ?? Promise.reject(signal.reason));
    const { kind: _, ...refusal } = taken;
    return { outcome: "retrying", fieldPath: undefined, isUnrecorded: true, ...refusal };
  } finally {
    linked.release();
  }
}
