// The history of one region in memory: the newest entries, at most so many.
import type { HistoryEntry, HistoryQuery, HistoryRetention } from "./store.ts";

const entriesMax = 1_000;

export class HistoryLog {
  /** The oldest first. */
  private entries: HistoryEntry[] = [];

  add(entry: HistoryEntry): void {
    this.entries.push(entry);
    if (this.entries.length > 2 * entriesMax) this.entries = this.entries.slice(-entriesMax);
  }

  /** Enters a report when it says something else than the last one on the same object. */
  addReport(entry: HistoryEntry): void {
    const last = this.entries.findLast(
      ({ event, kind, id }) => event === "reported" && kind === entry.kind && id === entry.id,
    );
    if (last?.outcome !== entry.outcome || last.version !== entry.version) this.add(entry);
  }

  newest({ kind, id, limit }: HistoryQuery): HistoryEntry[] {
    return this.entries
      .filter((entry) => (kind ?? entry.kind) === entry.kind && (id ?? entry.id) === entry.id)
      .slice(-Math.min(limit, entriesMax))
      .reverse();
  }

  trim({ ageMaxMs, entriesMax: most }: HistoryRetention, nowMs: number): void {
    const recent = this.entries.filter(({ atMs }) => atMs >= nowMs - ageMaxMs);
    this.entries = recent.slice(Math.max(0, recent.length - most));
  }
}
