// The last outcome of each key, with its reason. Its size is bounded by the number of keys.
import type { Clock } from "../concurrency/clock.ts";

export type Outcome =
  | "pending"
  | "applied"
  | "unchanged"
  | "deleted"
  | "parked"
  | "retrying"
  | "conflict"
  | "blocked";

export interface OutcomeRecord {
  readonly outcome: Outcome;
  /** Empty when nothing is wrong. */
  readonly reason: string;
  readonly fieldPath: string | undefined;
  /** Failed attempts in a row. */
  readonly attempts: number;
  /** Wall time at which the outcome became what it is. */
  readonly sinceMs: number;
  /** The version that was applied last. */
  readonly appliedVersion: bigint;
}

export interface OutcomeChange {
  readonly outcome: Outcome;
  readonly reason?: string | undefined;
  readonly fieldPath?: string | undefined;
  readonly appliedVersion?: bigint;
}

export type TroubledOutcome = Extract<Outcome, "parked" | "retrying" | "conflict" | "blocked">;

const failed: ReadonlySet<Outcome> = new Set(["parked", "retrying", "conflict"]);

export function isTroubled(outcome: Outcome): outcome is TroubledOutcome {
  return failed.has(outcome) || outcome === "blocked";
}

export class ObjectStatuses {
  private readonly clock: Clock;
  private readonly onCount: (outcome: TroubledOutcome, count: number) => void;
  private readonly records = new Map<string, OutcomeRecord>();
  private readonly counts = new Map<Outcome, number>();
  private changes = 0;

  /** `onCount` is called with the number of objects per troubled outcome, whenever it changes. */
  constructor(clock: Clock, onCount: (outcome: TroubledOutcome, count: number) => void) {
    this.clock = clock;
    this.onCount = onCount;
  }

  get(key: string): OutcomeRecord | undefined {
    return this.records.get(key);
  }

  /** Grows whenever a key is added or removed. */
  get revision(): number {
    return this.changes;
  }

  /** Returns the record, and whether its outcome or reason changed. */
  record(key: string, change: OutcomeChange): { readonly record: OutcomeRecord; readonly isNews: boolean } {
    const before = this.records.get(key);
    const { outcome, reason = "", fieldPath } = change;
    const isNews = before?.outcome !== outcome || before.reason !== reason;
    const record = {
      outcome,
      reason,
      fieldPath,
      attempts: failed.has(outcome) ? (before?.attempts ?? 0) + 1 : 0,
      sinceMs: before?.outcome === outcome ? before.sinceMs : this.clock.wallMs(),
      appliedVersion: change.appliedVersion ?? before?.appliedVersion ?? 0n,
    };
    if (before === undefined) this.changes += 1;
    this.records.set(key, record);
    this.count(before?.outcome, -1);
    this.count(outcome, 1);
    return { record, isNews };
  }

  forget(key: string): void {
    this.count(this.records.get(key)?.outcome, -1);
    if (this.records.delete(key)) this.changes += 1;
  }

  countOf(outcome: Outcome): number {
    return this.counts.get(outcome) ?? 0;
  }

  keys(): IterableIterator<string> {
    return this.records.keys();
  }

  private count(outcome: Outcome | undefined, by: number): void {
    if (outcome === undefined) return;
    const count = this.countOf(outcome) + by;
    this.counts.set(outcome, count);
    if (isTroubled(outcome)) this.onCount(outcome, count);
  }
}
