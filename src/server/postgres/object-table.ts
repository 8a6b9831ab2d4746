// Desired state in the table `objects`.
//
// - A change first takes the next number from the row of its region, which keeps that
//   row locked until the commit. So the changes of a region happen one after the other,
//   and whoever sees a number sees every row up to it.
// - Rows and the counter are read in one statement, hence in one snapshot.
// - Each change announces its number with its commit; see change-feed.ts.
import { type Kind, kinds } from "../kinds.ts";
import { checkIdentity, isSame, unknownRegion } from "../row-rules.ts";
import type { Author, Changed, ChangeOptions, Changes, Decide, Row } from "../store.ts";
import { changeChannel } from "./change-feed.ts";
import type { Database, Session } from "./database.ts";
import { readEnvironment } from "./environment-rows.ts";
import { addHistory } from "./history-table.ts";
import {
  decodeRow,
  hasObject,
  type MaybeObjectRow,
  type ObjectRow,
  objectColumns,
  specFormat,
  withinRange,
} from "./object-rows.ts";

/** Small enough not to hold up the changes of a region. */
const trimRowsMax = 500;

export class ObjectTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async change<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    options: ChangeOptions = {},
  ): Promise<Changed<K>> {
    const work = (session: Session) => this.write(session, region, kind, id, decide, author, options);
    try {
      return await this.database.transact(work);
    } catch (error) {
      // Who throws it has put in what was found.
      if (error instanceof NothingWritten) return error.found as Changed<K>;
      throw error;
    }
  }

  private async write<K extends Kind>(
    session: Session,
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    { dryRun = false, environmentId }: ChangeOptions,
  ): Promise<Changed<K>> {
    const version = await nextVersion(session, region);
    const before = await readRow(session, region, kind, id);
    const environment =
      environmentId === undefined ? undefined : await readEnvironment(session, region, environmentId);
    const wanted = decide(before, environment);
    if (wanted === undefined || (before !== undefined && isSame(kind, before, wanted))) {
      throw new NothingWritten({ before, after: before });
    }
    const after: Row<K> = { id, ...wanted, version };
    await writeRow(session, region, kind, after);
    if (dryRun) throw new NothingWritten({ before, after: { ...after, version: before?.version ?? 0n } });
    const event = wanted.desired === "stopped" ? "stopped" : "set";
    await addHistory(session, region, { ...author, kind, id, version, event, outcome: "" });
    await session.query("SELECT pg_notify($1, $2)", [changeChannel, `${version} ${region}`]);
    return { before, after };
  }

  async remove(region: string, kind: Kind, id: string, author: Author): Promise<boolean> {
    return this.database.transact(async (session) => {
      await lockRegion(session, region);
      const [removed] = await session.query<{ version: string }>(
        "DELETE FROM objects WHERE region = $1 AND kind = $2 AND id = $3 RETURNING version",
        [region, kind, id],
      );
      if (removed === undefined) return false;
      const version = BigInt(removed.version);
      await addHistory(session, region, { ...author, kind, id, version, event: "removed", outcome: "" });
      return true;
    });
  }

  async row<K extends Kind>(region: string, kind: K, id: string): Promise<Row<K> | undefined> {
    const [row] = await this.database.read<MaybeObjectRow>(
      `SELECT ${objectColumns} FROM regions r
       LEFT JOIN objects o ON o.region = r.name AND o.kind = $2 AND o.id = $3 WHERE r.name = $1`,
      [region, kind, id],
    );
    if (row === undefined) throw unknownRegion(region);
    return hasObject(row) ? decodeRow(kind, row) : undefined;
  }

  async rows<K extends Kind>(region: string, kind: K): Promise<readonly Row<K>[]> {
    const rows = await this.database.read<MaybeObjectRow>(
      `SELECT ${objectColumns} FROM regions r
       LEFT JOIN objects o ON o.region = r.name AND o.kind = $2 WHERE r.name = $1 ORDER BY o.version`,
      [region, kind],
    );
    if (rows.length === 0) throw unknownRegion(region);
    return rows.filter(hasObject).map((row) => decodeRow(kind, row));
  }

  async changesSince<K extends Kind>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>> {
    const rows = await this.database.read<MaybeObjectRow & { readonly counter: string }>(
      `SELECT r.counter, ${objectColumns} FROM regions r
       LEFT JOIN LATERAL (
         SELECT * FROM objects WHERE region = r.name AND kind = $2 AND version > $3
         ORDER BY version LIMIT $4
       ) o ON true
       WHERE r.name = $1 ORDER BY o.version`,
      [region, kind, withinRange(cursor), limit],
    );
    const first = rows[0];
    if (first === undefined) throw unknownRegion(region);
    return {
      rows: rows.filter(hasObject).map((row) => decodeRow(kind, row)),
      counter: BigInt(first.counter),
    };
  }

  /** Forgets the deployments that were reported gone before then, after their deletion was ordered. */
  async trimStopped(oldestMs: number): Promise<void> {
    const regions = await this.database.read<{ name: string }>("SELECT name FROM regions", []);
    for (const { name } of regions) {
      while ((await this.trimSome(name, Math.trunc(oldestMs))) === trimRowsMax);
    }
  }

  private trimSome(region: string, oldestMs: number): Promise<number> {
    return this.database.transact(async (session) => {
      await lockRegion(session, region);
      const removed = await session.query(
        `DELETE FROM objects WHERE region = $1 AND kind = 'deployment' AND id IN (
           SELECT o.id FROM objects o JOIN reports p USING (region, kind, id)
           WHERE o.region = $1 AND o.kind = 'deployment' AND o.desired = 'stopped'
             AND NOT p.present AND p.version = o.version AND p.at_ms < $2
           LIMIT $3
         ) RETURNING id`,
        [region, oldestMs, trimRowsMax],
      );
      return removed.length;
    });
  }
}

/** Undoes the transaction, and with it the number that it took. */
class NothingWritten extends Error {
  readonly found: Changed<Kind>;

  constructor(found: Changed<Kind>) {
    super("nothing was written");
    this.found = found;
  }
}

async function nextVersion(session: Session, region: string): Promise<bigint> {
  const [row] = await session.query<{ counter: string }>(
    "UPDATE regions SET counter = counter + 1 WHERE name = $1 RETURNING counter",
    [region],
  );
  if (row === undefined) throw unknownRegion(region);
  return BigInt(row.counter);
}

/** Holds up every other change of the region until the end of the transaction. */
export async function lockRegion(session: Session, region: string): Promise<void> {
  const rows = await session.query("SELECT 1 FROM regions WHERE name = $1 FOR NO KEY UPDATE", [region]);
  if (rows.length === 0) throw unknownRegion(region);
}

async function readRow<K extends Kind>(
  session: Session,
  region: string,
  kind: K,
  id: string,
): Promise<Row<K> | undefined> {
  const [found] = await session.query<ObjectRow>(
    `SELECT ${objectColumns} FROM objects o WHERE o.region = $1 AND o.kind = $2 AND o.id = $3`,
    [region, kind, id],
  );
  return found && decodeRow(kind, found);
}

async function writeRow<K extends Kind>(
  session: Session,
  region: string,
  kind: K,
  row: Row<K>,
): Promise<void> {
  const { id, spec, desired, version, deploymentId } = row;
  const name = kinds[kind].nameOf(spec);
  const related = await session.query<{ id: string; name: string }>(
    "SELECT id, name FROM objects WHERE region = $1 AND kind = $2 AND (id = $3 OR name = $4)",
    [region, kind, id, name],
  );
  checkIdentity(kind, id, spec, {
    nameHolder: related.find((each) => each.name === name)?.id,
    nameBefore: related.find((each) => each.id === id)?.name,
  });
  const bytes = Buffer.from(kinds[kind].encodeSpec(spec));
  await session.query(
    `INSERT INTO objects (region, kind, id, name, desired, format, spec, deployment_id, version)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (region, kind, id) DO UPDATE SET
       desired = excluded.desired, format = excluded.format, spec = excluded.spec,
       deployment_id = excluded.deployment_id, version = excluded.version`,
    [region, kind, id, name, desired, specFormat, bytes, deploymentId ?? null, version],
  );
}
