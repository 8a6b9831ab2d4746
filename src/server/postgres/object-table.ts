// Desired state, in the table `objects`.
//
// - A change first takes the next version from its region's row, which keeps that row
//   locked until the commit. So the changes of a region happen one after the other, and a
//   reader that sees a version sees every row up to it.
// - Rows and the counter are read in one statement, hence in one snapshot.
// - Each change announces its version with its commit; see change-feed.ts.
// - A version is taken only in the incarnation that this database started: not, for example,
//   after a promotion that no server has noticed yet.
import { type KindName, kindOf, kindsOwnedBy } from "../../kinds/kinds.ts";
import { encodeSpec } from "../kind-messages.ts";
import { checkIdentity, isSame, unknownRegion } from "../row-rules.ts";
import {
  type Author,
  type Changed,
  type ChangeOptions,
  type Changes,
  changesBytesMax,
  type Decide,
  type FoundRow,
  type Row,
  StoreError,
} from "../store.ts";
import { changeChannel } from "./change-feed.ts";
import type { Database, Session } from "./database.ts";
import { readEnvironment } from "./environment-rows.ts";
import { addHistory } from "./history-table.ts";
import { claimHostnames } from "./hostname-tables.ts";
import {
  type IncarnationRow,
  type IncarnationTable,
  incarnationColumns,
  incarnationOf,
} from "./incarnation-table.ts";
import {
  decodeRow,
  hasObject,
  type MaybeObjectRow,
  type ObjectRow,
  objectColumns,
  specFormat,
  withinRange,
} from "./object-rows.ts";

const attemptsMax = 3;

export class ObjectTable {
  private readonly database: Database;
  private readonly incarnations: Pick<IncarnationTable, "check">;

  constructor(database: Database, incarnations: Pick<IncarnationTable, "check">) {
    this.database = database;
    this.incarnations = incarnations;
  }

  async change<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    options: ChangeOptions = {},
  ): Promise<Changed<K>> {
    try {
      return await this.transact((session) => this.write(session, region, kind, id, decide, author, options));
    } catch (error) {
      // The thrower put the result into the error.
      if (error instanceof NothingWritten) return error.found as Changed<K>;
      throw error;
    }
  }

  /** For work that takes versions. It may run more than once. */
  async transact<T>(work: (session: Session) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.database.transact(work);
      } catch (error) {
        if (!(error instanceof OtherDatabase)) throw error;
        if (attempt === attemptsMax) throw new StoreError("unavailable", "the database is being replaced");
        await this.incarnations.check();
      }
    }
  }

  private async write<K extends KindName>(
    session: Session,
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    { dryRun = false, environmentId, withOwned = false }: ChangeOptions,
  ): Promise<Changed<K>> {
    const version = await takeVersions(session, region, 1);
    const before = await readRow(session, region, kind, id);
    const environment =
      environmentId === undefined ? undefined : await readEnvironment(session, region, environmentId);
    const wanted = decide(before, environment);
    if (wanted === undefined || (before !== undefined && isSame(kind, before, wanted))) {
      const stopped =
        withOwned && !dryRun ? await stopOwnedBy(session, region, kind, before, author, version) : undefined;
      if (stopped === undefined) throw new NothingWritten({ before, after: before });
      await announce(session, region, stopped);
      return { before, after: before };
    }
    const after: Row<K> = { id, ...wanted, version };
    await writeRow(session, region, kind, after);
    if (dryRun) throw new NothingWritten({ before, after: { ...after, version: before?.version ?? 0n } });
    const event = wanted.desired === "stopped" ? "stopped" : "set";
    await addHistory(session, region, { ...author, kind, id, version, event, outcome: "" });
    const stopped = withOwned ? await stopOwnedBy(session, region, kind, after, author) : undefined;
    await announce(session, region, stopped ?? version);
    return { before, after };
  }

  async remove(region: string, kind: KindName, id: string, author: Author): Promise<boolean> {
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

  async row<K extends KindName>(region: string, kind: K, id: string): Promise<Row<K> | undefined> {
    const [row] = await this.database.read<MaybeObjectRow>(
      `SELECT ${objectColumns} FROM regions r
       LEFT JOIN objects o ON o.region = r.name AND o.kind = $2 AND o.id = $3 WHERE r.name = $1`,
      [region, kind, id],
    );
    if (row === undefined) throw unknownRegion(region);
    return hasObject(row) ? decodeRow(kind, row) : undefined;
  }

  async find<K extends KindName>(region: string, kind: K, id: string): Promise<FoundRow<K>> {
    const [row] = await this.database.read<MaybeObjectRow & IncarnationRow & { readonly counter: string }>(
      `SELECT r.counter, ${incarnationColumns}, ${objectColumns} FROM regions r
       LEFT JOIN objects o ON o.region = r.name AND o.kind = $2 AND o.id = $3 WHERE r.name = $1`,
      [region, kind, id],
    );
    if (row === undefined) throw unknownRegion(region);
    return {
      row: hasObject(row) ? decodeRow(kind, row) : undefined,
      counter: BigInt(row.counter),
      incarnation: incarnationOf(row),
    };
  }

  async rows<K extends KindName>(region: string, kind: K): Promise<readonly Row<K>[]> {
    const rows = await this.database.read<MaybeObjectRow>(
      `SELECT ${objectColumns} FROM regions r
       LEFT JOIN objects o ON o.region = r.name AND o.kind = $2 WHERE r.name = $1 ORDER BY o.version`,
      [region, kind],
    );
    if (rows.length === 0) throw unknownRegion(region);
    return rows.filter(hasObject).map((row) => decodeRow(kind, row));
  }

  async changesSince<K extends KindName>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>> {
    const rows = await this.database.read<MaybeObjectRow & IncarnationRow & { readonly counter: string }>(
      `SELECT r.counter, ${incarnationColumns}, ${objectColumns} FROM regions r
       LEFT JOIN LATERAL (
         SELECT *, sum(octet_length(spec)) OVER (ORDER BY version) AS bytes FROM (
           SELECT * FROM objects WHERE region = r.name AND kind = $2 AND version > $3
           ORDER BY version LIMIT $4
         ) found
       ) o ON o.bytes - octet_length(o.spec) < ${changesBytesMax}
       WHERE r.name = $1 ORDER BY o.version`,
      [region, kind, withinRange(cursor), limit],
    );
    const first = rows[0];
    if (first === undefined) throw unknownRegion(region);
    const found = rows.filter(hasObject);
    const bytes = found.reduce((sum, { spec }) => sum + spec.length, 0);
    return {
      rows: found.map((row) => decodeRow(kind, row)),
      counter: BigInt(first.counter),
      isFull: found.length === limit || bytes >= changesBytesMax,
      incarnation: incarnationOf(first),
    };
  }
}

/** Rolls the transaction back, and with it the version that it took. */
class NothingWritten extends Error {
  readonly found: Changed<KindName>;

  constructor(found: Changed<KindName>) {
    super("nothing was written");
    this.found = found;
  }
}

/** Takes `count` versions; resolves with the last one. */
export async function takeVersions(session: Session, region: string, count: number): Promise<bigint> {
  const [row] = await session.query<{ counter: string; is_same: boolean }>(
    `UPDATE regions SET counter = counter + $2 WHERE name = $1 RETURNING counter,
       (SELECT facts FROM incarnations ORDER BY ordinal DESC LIMIT 1) IS NOT DISTINCT FROM database_facts() AS is_same`,
    [region, count],
  );
  if (row === undefined) throw unknownRegion(region);
  if (!row.is_same) throw new OtherDatabase();
  return BigInt(row.counter);
}

/** This is not the database that started the current incarnation. Rolls the transaction back. */
class OtherDatabase extends Error {
  override readonly name = "OtherDatabase";
}

export function announce(session: Session, region: string, version: bigint): Promise<unknown> {
  return session.query("SELECT pg_notify($1, $2)", [changeChannel, `${version} ${region}`]);
}

/** Resolves with the last version taken; undefined if there are no such rows. `spare` is an unused version. */
export async function stopOwnedBy(
  session: Session,
  region: string,
  kind: KindName,
  owner: Row<KindName> | undefined,
  author: Author,
  spare?: bigint,
): Promise<bigint | undefined> {
  const owned = kindsOwnedBy(kind).map(({ name }) => name);
  if (owned.length === 0 || owner?.desired !== "stopped") return undefined;
  const rows = await session.query<{ kind: KindName; id: string }>(
    `SELECT kind, id FROM objects WHERE region = $1 AND kind = ANY ($5::text[]) AND deployment_id = $2
       AND desired = 'running' AND format = $3 AND version < $4 ORDER BY version`,
    [region, owner.id, specFormat, owner.version, owned],
  );
  if (rows.length === 0) return undefined;
  const last = await takeVersions(session, region, rows.length - (spare === undefined ? 0 : 1));
  const first = last - BigInt(rows.length) + 1n;
  const stopped = rows.map((row, index) => ({ ...row, version: first + BigInt(index) }));
  await session.query(
    `UPDATE objects o SET desired = 'stopped', version = f.version
     FROM unnest($2::text[], $3::text[], $4::bigint[]) AS f (kind, id, version)
     WHERE o.region = $1 AND o.kind = f.kind AND o.id = f.id`,
    [
      region,
      stopped.map((row) => row.kind),
      stopped.map(({ id }) => id),
      stopped.map(({ version }) => String(version)),
    ],
  );
  const entries = stopped.map((row) => ({ ...author, ...row, event: "stopped", outcome: "" }) as const);
  await addHistory(session, region, ...entries);
  return last;
}

/** Blocks every other change of the region until the end of the transaction. */
export async function lockRegion(session: Session, region: string): Promise<void> {
  const rows = await session.query("SELECT 1 FROM regions WHERE name = $1 FOR NO KEY UPDATE", [region]);
  if (rows.length === 0) throw unknownRegion(region);
}

export async function readRow<K extends KindName>(
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

export async function writeRow<K extends KindName>(
  session: Session,
  region: string,
  kind: K,
  row: Row<K>,
): Promise<void> {
  const { id, spec, desired, version, deploymentId, appId } = row;
  const name = kindOf(kind).uniqueNameOf(spec);
  const related = await session.query<{ id: string; name: string }>(
    "SELECT id, name FROM objects WHERE region = $1 AND kind = $2 AND (id = $3 OR name = $4)",
    [region, kind, id, name],
  );
  checkIdentity(kind, id, spec, {
    nameHolder: related.find((each) => each.name === name)?.id,
    nameBefore: related.find((each) => each.id === id)?.name,
  });
  const bytes = Buffer.from(encodeSpec(kind, spec));
  await session.query(
    `INSERT INTO objects (region, kind, id, name, desired, format, spec, deployment_id, app_id, version)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (region, kind, id) DO UPDATE SET
       desired = excluded.desired, format = excluded.format, spec = excluded.spec,
       deployment_id = excluded.deployment_id, app_id = excluded.app_id, version = excluded.version`,
    [region, kind, id, name, desired, specFormat, bytes, deploymentId ?? null, appId ?? null, version],
  );
  // A row written under a kind is a row of that kind.
  if (kind === "route") await claimHostnames(session, region, row as Row<KindName> as Row<"route">);
}
