// The incarnations of this database's history, in the table `incarnations`; the one with the highest ordinal is current.
//
// - A database that was restored, copied or promoted is recognized by facts that such an operation changes: the system
//   identifier, the timeline of the current WAL file, the database's oid and the table's own oid. When they differ from
//   those of the current incarnation, a new one is started.
// - Starting one is a compare-and-set: `parent` is unique, so that of several servers one succeeds.
// - The ordinal is a time in milliseconds, and always higher than the parent's. So an incarnation that was started on a
//   restored copy is also newer than those that the copy does not know.
// - A replica writes nothing. It serves the incarnation of its primary, as far as it has received it.
import { type Incarnation, parseIncarnation } from "../../control-plane/incarnation.ts";
import type { StoreIncarnation } from "../client-position.ts";
import type { NewIncarnation } from "../store.ts";
import type { Database } from "./database.ts";
import { withinRange } from "./object-rows.ts";

/** Read with other rows, in the same snapshot. */
export const incarnationColumns = `
  (SELECT ordinal || '/' || id || '/' || parent FROM incarnations ORDER BY ordinal DESC LIMIT 1) AS incarnation,
  pg_is_in_recovery() AS is_replica`;

export interface IncarnationRow {
  /** Null before the first one. */
  readonly incarnation: string | null;
  readonly is_replica: boolean;
}

const cachedMs = 1_000;
/** Starts that agents cause: this many in this time. An agent could make up what it has seen. */
const rollBacksMax = 3;
const rollBackWindowMs = 600_000;

export interface IncarnationTableDeps {
  readonly nowMs: () => number;
  onStarted(started: Incarnation, reason: string): void;
}

export class IncarnationTable {
  private readonly database: Database;
  private readonly deps: IncarnationTableDeps;
  private cached: { readonly incarnation: StoreIncarnation | undefined; readonly atMs: number } | undefined;

  constructor(database: Database, deps: IncarnationTableDeps) {
    this.database = database;
    this.deps = deps;
  }

  /** At most a second old. */
  async current(): Promise<StoreIncarnation | undefined> {
    const { cached } = this;
    if (cached !== undefined && this.deps.nowMs() - cached.atMs < cachedMs) return cached.incarnation;
    return this.read();
  }

  /** Starts a new incarnation if this is not the database that started the current one. */
  async check(): Promise<void> {
    const [row] = await this.database.read<IncarnationRow & { readonly is_same: boolean | null }>(
      `SELECT ${incarnationColumns},
         (SELECT facts FROM incarnations ORDER BY ordinal DESC LIMIT 1) = database_facts() AS is_same`,
      [],
    );
    if (row === undefined || row.is_replica || row.is_same) return;
    const current = incarnationOf(row);
    await this.insert(current, 0n, current === undefined ? "first" : "another database", "true", []);
  }

  /** The counter of the region was higher before, in the current incarnation. */
  async startAfterRollBack(region: string, version: bigint): Promise<void> {
    const current = await this.read();
    if (current === undefined) return;
    const { id, ordinal } = current;
    const seen = { region, incarnationId: id, version };
    await this.start({ replaces: id, above: ordinal, reason: "rolled back", seen });
  }

  async start({ replaces, above, reason, seen }: NewIncarnation): Promise<Incarnation | undefined> {
    const current = await this.read();
    if (current === undefined || current.isReplica || current.id !== replaces) return current;
    if (seen === undefined) await this.insert(current, above, reason, "true", []);
    else {
      const { region, incarnationId, version, row } = seen;
      const condition = `(
          (c.id = $4 AND (SELECT counter FROM regions WHERE name = $5) < $6::bigint)
          OR (c.id = $4 AND EXISTS (
            SELECT 1 FROM objects WHERE region = $5 AND kind = $7 AND id = $8 AND version < $9::bigint
          ))
          OR NOT EXISTS (SELECT 1 FROM incarnations WHERE id = $4)
        ) AND (
          SELECT count(*) FROM incarnations
          WHERE reason = '${reason}' AND started_ms > f.now_ms - ${rollBackWindowMs}
        ) < ${rollBacksMax}`;
      const object = [row?.kind ?? "", row?.id ?? "", withinRange(row?.version ?? 0n)];
      const values = [incarnationId, region, withinRange(version), ...object];
      await this.insert(current, above, reason, condition, values);
    }
    return this.read();
  }

  private async read(): Promise<StoreIncarnation | undefined> {
    const [row] = await this.database.read<IncarnationRow>(`SELECT ${incarnationColumns}`, []);
    const incarnation = row && incarnationOf(row);
    this.cached = { incarnation, atMs: this.deps.nowMs() };
    return incarnation;
  }

  private async insert(
    replaces: Incarnation | undefined,
    above: bigint,
    reason: string,
    condition: string,
    values: readonly unknown[],
  ): Promise<void> {
    const [started] = await this.database.transact((session) =>
      session.query<{ incarnation: string }>(
        `INSERT INTO incarnations (ordinal, id, parent, facts, started_ms, reason)
         SELECT greatest(coalesce(c.ordinal, 0) + 1, $2::bigint + 1, f.now_ms),
                left(md5(f.facts), 12) || '-' || left(md5(gen_random_uuid()::text), 12),
                $1, f.facts, f.now_ms, $3
         FROM (
           SELECT database_facts() AS facts, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
         ) f LEFT JOIN (SELECT ordinal, id FROM incarnations ORDER BY ordinal DESC LIMIT 1) c ON true
         WHERE coalesce(c.id, '') = $1 AND f.facts IS NOT NULL AND ${condition}
         ON CONFLICT DO NOTHING
         RETURNING ordinal || '/' || id || '/' || parent AS incarnation`,
        [replaces?.id ?? "", withinRange(above), reason, ...values],
      ),
    );
    this.cached = undefined;
    const incarnation = parseIncarnation(started?.incarnation);
    if (incarnation !== undefined) this.deps.onStarted(incarnation, reason);
  }
}

export function incarnationOf({ incarnation, is_replica }: IncarnationRow): StoreIncarnation | undefined {
  const parsed = parseIncarnation(incarnation);
  return parsed && { ...parsed, isReplica: is_replica };
}
