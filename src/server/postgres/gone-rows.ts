// Notes in the table `objects` since when a deleted object has been gone, and purges it
// once that is long enough. Candidates are found without a lock; a row that changed
// meanwhile has another version and is left alone.

import { type KindName, kindNames, kindOf } from "../../kinds/kinds.ts";
import { forgottenBefore, type Gone, goneSince, type HeardOfAgent } from "../gone-objects.ts";
import type { Database, Session } from "./database.ts";
import { type ObjectRow, objectColumns } from "./object-rows.ts";
import { lockRegion } from "./object-table.ts";
import { type ReportRow, reportColumns, storedObject } from "./report-tables.ts";

/** A row may carry 96 KiB of secrets, and the changes and reports of a region wait for a batch. */
const batchMax = 50;

interface StoppedRow extends ObjectRow, ReportRow {
  readonly gone_version: string | null;
  readonly gone_at_ms: string | null;
}

interface Found {
  readonly id: string;
  readonly version: bigint;
  readonly before: Gone | undefined;
  readonly gone: Gone | undefined;
}

export interface GoneLimits {
  readonly nowMs: number;
  /** Objects gone for longer are purged. */
  readonly ageMaxMs: number;
}

export async function trimGone(
  database: Database,
  region: string,
  agent: HeardOfAgent,
  { nowMs, ageMaxMs }: GoneLimits,
): Promise<void> {
  const oldestMs = forgottenBefore(agent, ageMaxMs, nowMs);
  for (const kind of kindNames) {
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const rows: readonly StoppedRow[] = await readStopped(database, region, kind, cursor);
      const found = rows.map((row) => look(kind, row, agent, nowMs));
      const news = found.filter(({ before, gone }) => gone !== before || isOver(gone, oldestMs));
      if (news.length > 0) {
        await database.transact((session) => write(session, region, kind, news, oldestMs));
      }
      cursor = rows.length < batchMax ? undefined : rows.at(-1)?.id;
    }
  }
}

function isOver(gone: Gone | undefined, oldestMs: number): boolean {
  return gone !== undefined && gone.atMs < oldestMs;
}

function readStopped(
  database: Database,
  region: string,
  kind: KindName,
  afterId: string,
): Promise<readonly StoppedRow[]> {
  return database.read<StoppedRow>(
    `SELECT ${objectColumns}, o.gone_version, o.gone_at_ms, ${reportColumns}
     FROM objects o LEFT JOIN reports p ON p.region = o.region AND p.kind = o.kind AND p.id = o.id
     WHERE o.region = $1 AND o.kind = $2 AND o.desired = 'stopped' AND o.id COLLATE "C" > $3
     ORDER BY o.id COLLATE "C" LIMIT $4`,
    [region, kind, afterId, batchMax],
  );
}

function look(kind: KindName, row: StoppedRow, agent: HeardOfAgent, nowMs: number): Found {
  const { id, gone_version, gone_at_ms } = row;
  const version = BigInt(row.version);
  const before =
    gone_version === null ? undefined : { version: BigInt(gone_version), atMs: Number(gone_at_ms) };
  // Its instances do not matter for whether it is gone, and are not read.
  const object = storedObject(kind, row, []);
  return { id, version, before, gone: goneSince(kind, object, agent, before, nowMs) };
}

async function write(
  session: Session,
  region: string,
  kind: KindName,
  found: readonly Found[],
  oldestMs: number,
): Promise<void> {
  // Locks out reports too: one in progress that says that the object exists again would be deleted with the row.
  await session.query("SELECT 1 FROM agents WHERE region = $1 FOR UPDATE", [region]);
  await lockRegion(session, region);
  await session.query(
    `UPDATE objects o SET gone_version = f.gone_version, gone_at_ms = f.gone_at_ms
     FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
       AS f (id, version, gone_version, gone_at_ms)
     WHERE o.region = $1 AND o.kind = $2 AND o.id = f.id AND o.version = f.version`,
    [
      region,
      kind,
      found.map(({ id }) => id),
      found.map(({ version }) => String(version)),
      found.map(({ gone }) => gone && String(gone.version)),
      found.map(({ gone }) => gone && Math.trunc(gone.atMs)),
    ],
  );
  await session.query(
    `DELETE FROM objects o WHERE o.region = $1 AND o.kind = $2 AND o.id = ANY ($3::text[])
       AND o.desired = 'stopped' AND o.gone_version = o.version AND o.gone_at_ms < $4
       AND NOT EXISTS (
         SELECT 1 FROM reports p
         WHERE p.region = o.region AND p.kind = o.kind AND p.id = o.id AND p.present AND $5
       )`,
    [region, kind, found.map(({ id }) => id), Math.trunc(oldestMs), kindOf(kind).reports?.sayGone ?? false],
  );
}
