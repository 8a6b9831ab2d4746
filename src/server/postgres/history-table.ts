// History, in the table `history`, and its purging.
import { unknownRegion } from "../row-rules.ts";
import { endsMembership, type SetMember } from "../sets.ts";
import {
  type HistoryEntry,
  type HistoryKind,
  type HistoryQuery,
  type HistoryRetention,
  type HistorySince,
  type NumberedEntry,
  observations,
} from "../store.ts";
import type { Database, Session } from "./database.ts";
import { withinRange } from "./object-rows.ts";

const answerEntriesMax = 1_000;
/** Small enough to finish within the statement timeout. */
const trimEntriesMax = 10_000;

const entryColumns = "h.number, h.at_ms, h.author, h.kind, h.id, h.version, h.event, h.outcome";

interface HistoryRow {
  readonly number: string;
  readonly at_ms: string | null;
  readonly author: string;
  readonly kind: HistoryKind;
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

  async newest(
    region: string,
    { kind, id, changesOnly, limit }: HistoryQuery,
  ): Promise<readonly NumberedEntry[]> {
    const rows = await this.database.read<HistoryRow>(
      `SELECT ${entryColumns}
       FROM regions r LEFT JOIN LATERAL (
         SELECT * FROM history
         WHERE region = r.name AND number IS NOT NULL
           AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR id = $3) AND event <> ALL ($5::text[])
         ORDER BY number DESC LIMIT $4
       ) h ON true
       WHERE r.name = $1 ORDER BY h.number DESC`,
      [region, kind ?? null, id ?? null, Math.min(limit, answerEntriesMax), leftOut(changesOnly)],
    );
    if (rows.length === 0) throw unknownRegion(region);
    return rows.flatMap((row) => (row.at_ms === null ? [] : [entryOf(row)]));
  }

  async since(
    region: string,
    number: bigint,
    { kind, id, changesOnly, limit }: HistoryQuery,
  ): Promise<HistorySince> {
    const rows = await this.database.read<HistoryRow & { readonly newest: string | null }>(
      `SELECT n.newest, ${entryColumns}
       FROM regions r LEFT JOIN history_heads n ON n.region = r.name
       LEFT JOIN LATERAL (
         SELECT * FROM history
         WHERE region = r.name AND number > $5
           AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR id = $3) AND event <> ALL ($6::text[])
         ORDER BY number LIMIT $4
       ) h ON true
       WHERE r.name = $1 ORDER BY h.number`,
      [
        ...[region, kind ?? null, id ?? null, Math.min(limit, answerEntriesMax)],
        ...[withinRange(number), leftOut(changesOnly)],
      ],
    );
    const first = rows[0];
    if (first === undefined) throw unknownRegion(region);
    return {
      entries: rows.flatMap((row) => (row.at_ms === null ? [] : [entryOf(row)])),
      newest: BigInt(first.newest ?? 0),
    };
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
           WHERE region = $1 AND number IS NOT NULL AND (at_ms < $2 OR number <= (
             SELECT number FROM history WHERE region = $1 AND number IS NOT NULL
             ORDER BY number DESC OFFSET $3 LIMIT 1
           ))
           ORDER BY number LIMIT $4
         ) RETURNING entry`,
        [region, oldestMs, entriesMax, trimEntriesMax],
      ),
    );
    return removed.length;
  }
}

/** Adds all entries in one statement, which numbers them in this order. What was deleted leaves its set. */
export async function addHistory(
  session: Session,
  region: string,
  ...entries: readonly HistoryEntry[]
): Promise<void> {
  if (entries.length === 0) return;
  await leaveSets(session, region, entries.filter(endsMembership));
  await session.query(
    `INSERT INTO history (region, at_ms, author, kind, id, version, event, outcome)
     SELECT $1, at_ms, author, kind, id, version, event, outcome
     FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[])
       WITH ORDINALITY AS t (at_ms, author, kind, id, version, event, outcome, place)
     ORDER BY place`,
    [
      region,
      entries.map(({ atMs }) => Math.trunc(atMs)),
      entries.map(({ by }) => by),
      entries.map(({ kind }) => kind),
      entries.map(({ id }) => id),
      entries.map(({ version }) => String(version)),
      entries.map(({ event }) => event),
      entries.map(({ outcome }) => outcome),
    ],
  );
}

async function leaveSets(session: Session, region: string, members: readonly SetMember[]): Promise<void> {
  if (members.length === 0) return;
  await session.query(
    `DELETE FROM set_members m USING unnest($2::text[], $3::text[]) AS t (kind, id)
     WHERE m.region = $1 AND m.kind = t.kind AND m.id = t.id`,
    [region, members.map(({ kind }) => kind), members.map(({ id }) => id)],
  );
}

function leftOut(changesOnly = false): readonly string[] {
  return changesOnly ? observations : [];
}

function entryOf(row: HistoryRow): NumberedEntry {
  const { author: by, kind, id, event, outcome } = row;
  const [version, number] = [BigInt(row.version), BigInt(row.number)];
  return { by, atMs: Number(row.at_ms), kind, id, version, event, outcome, number };
}
