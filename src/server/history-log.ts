// The history of one region in memory, limited to the newest entries.
import type { HistoryEntry, HistoryQuery, HistoryRetention, HistorySince, NumberedEntry } from "./store.ts";

const entriesMax = 1_000;

export class HistoryLog {
  /** Oldest first. */
  private entries: NumberedEntry[] = [];
  private last = 0n;

  add(entry: HistoryEntry): void {
    this.last += 1n;
    this.entries.push({ ...entry, number: this.last });
    if (this.entries.length > 2 * entriesMax) this.entries = this.entries.slice(-entriesMax);
  }

  newest(query: HistoryQuery): NumberedEntry[] {
    return query.limit === 0 ? [] : this.matching(query).slice(-Math.min(query.limit, entriesMax)).reverse();
  }

  since(number: bigint, query: HistoryQuery): HistorySince {
    const entries = this.matching(query).filter((entry) => entry.number > number);
    return { entries: entries.slice(0, Math.min(query.limit, entriesMax)), newest: this.last };
  }

  trim({ ageMaxMs, entriesMax: most }: HistoryRetention, nowMs: number): void {
    const recent = this.entries.filter(({ atMs }) => atMs >= nowMs - ageMaxMs);
    this.entries = recent.slice(Math.max(0, recent.length - most));
  }

  private matching({ kind, id }: HistoryQuery): NumberedEntry[] {
    return this.entries.filter(
      (entry) => (kind ?? entry.kind) === entry.kind && (id ?? entry.id) === entry.id,
    );
  }
}
