// What happened, in the table `history`, and the end of what is kept of it.
import type { Kind } from "../kinds.ts";
import { unknownRegion } from "../row-rules.ts";
import type { HistoryEntry, HistoryQuery, HistoryRetention } from "../store.ts";
import type { Database, Session } from "./database.ts";

const answerEntriesMax = 1_000;
/** Small enough to be done within the time that one statement has. */
const trimEntriesMax = 10_000;

interface HistoryRow {
  readonly at_ms: string | null;
  readonly author: string;
  readonly kind: Kind;
  readonly id: string;
  readonly version: string;
  readonly event: HistoryEntry["event"];
  readonly outcome: string;
}

export class HistoryTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async add(session: Session, region: string, entry: HistoryEntry): Promise<void> {
    const { atMs, by, kind, id, version, event, outcome } = entry;
    await session.query(
      `INSERT INTO history (region, at_ms, author, kind, id, version, event, outcome)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [region, Math.trunc(atMs), by, kind, id, version, event, outcome],
    );
  }

  async newest(region: string, { kind, id, limit }: HistoryQuery): Promise<readonly HistoryEntry[]> {
    const rows = await this.database.read<HistoryRow>(
      `SELECT h.at_ms, h.author, h.kind, h.id, h.version, h.event, h.outcome
       FROM regions r LEFT JOIN LATERAL (
         SELECT * FROM history
         WHERE region = r.name AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR id = $3)
         ORDER BY entry DESC LIMIT $4
       ) h ON true
       WHERE r.name = $1 ORDER BY h.entry DESC`,
      [region, kind ?? null, id ?? null, Math.min(limit, answerEntriesMax)],
    );
    if (rows.length === 0) throw unknownRegion(region);
    return rows.flatMap((row) => (row.at_ms === null ? [] : [entryOf(row)]));
  }

  async trim({ ageMaxMs, entriesMax }: HistoryRetention, nowMs: number): Promise<void> {
    const regions = await this.database.read<{ name: string }>("SELECT name FROM regions", []);
    for (const { name } of regions) {
      while ((await this.trimSome(name, Math.trunc(nowMs - ageMaxMs), entriesMax)) === trimEntriesMax);
    }
  }

  private async trimSome(region: string, oldestMs: number, entriesMax: number): Promise<number> {
    const removed = await this.database.transact((session) =>
      session.query(
        `DELETE FROM history WHERE entry IN (
           SELECT entry FROM history
           WHERE region = $1 AND (at_ms < $2 OR entry <= (
             SELECT entry FROM history WHERE region = $1 ORDER BY entry DESC OFFSET $3 LIMIT 1
           ))
           ORDER BY entry LIMIT $4
         ) RETURNING entry`,
        [region, oldestMs, entriesMax, trimEntriesMax],
      ),
    );
    return removed.length;
  }
}

function entryOf(row: HistoryRow): HistoryEntry {
  const { author: by, kind, id, event, outcome } = row;
  return { by, atMs: Number(row.at_ms), kind, id, version: BigInt(row.version), event, outcome };
}
