// Environments and their encrypted secrets, in the table `environments`. A change locks
// its region, so that it is decided on current data.
import { create, toBinary } from "@bufbuild/protobuf";
import { SecretsConfigSchema } from "../../gen/ctrl/v1/secrets_pb.ts";
import type { KindName } from "../../kinds/kinds.ts";
import {
  assertUnused,
  environmentNews,
  isSameEnvironment,
  keptOwner,
  removalOf,
  tenantKinds,
} from "../environment-rules.ts";
import { unknownRegion } from "../row-rules.ts";
import type { Author, EnvironmentContent, StoredEnvironment } from "../store.ts";
import { assertNoAppUses } from "./app-table.ts";
import type { Database, Session } from "./database.ts";
import {
  decodeEnvironment,
  type EnvironmentRow,
  environmentColumns,
  readEnvironment,
} from "./environment-rows.ts";
import { addHistory } from "./history-table.ts";
import { decodeRow, type ObjectRow, objectColumns } from "./object-rows.ts";
import { lockRegion } from "./object-table.ts";

/** A row may carry 96 KiB of secrets. */
const batchMax = 50;

export class EnvironmentTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async change(
    region: string,
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
    author: Author,
    unused?: SeenVersions,
  ): Promise<StoredEnvironment | undefined> {
    const outcome = await this.database.transact(async (session) => {
      await lockRegion(session, region);
      const before = await readEnvironment(session, region, id);
      const wanted = decide(before);
      if (wanted === undefined || (before !== undefined && isSameEnvironment(before, wanted)))
        return { environment: before };
      const use = { region, id, refused: keptOwner(before, wanted) };
      if (use.refused !== undefined) {
        if (unused === undefined) return { use };
        await assertStillUnused(session, use, unused);
      }
      const after = await write(session, region, id, wanted);
      await addHistory(session, region, ...environmentNews(before, after, author));
      return { environment: after };
    });
    if (outcome.use === undefined) return outcome.environment;
    return this.change(region, id, decide, author, await this.assertUnused(outcome.use));
  }

  async remove(region: string, id: string, author: Author): Promise<boolean> {
    const seen = await this.assertUnused({ region, id });
    return this.database.transact(async (session) => {
      await lockRegion(session, region);
      await assertStillUnused(session, { region, id }, seen);
      const [removed] = await session.query<{ version: string }>(
        "DELETE FROM environments WHERE region = $1 AND id = $2 RETURNING version",
        [region, id],
      );
      if (removed === undefined) return false;
      await addHistory(session, region, removalOf({ id, version: BigInt(removed.version) }, author));
      return true;
    });
  }

  /**
   * Looks for users before it locks the region, because that takes longer with more objects. Rows changed since then
   * have higher versions, and are checked again under the lock.
   */
  private async assertUnused(use: EnvironmentUse): Promise<SeenVersions> {
    const seen = new Map<KindName, string>();
    const read: Read = (sql, values) => this.database.read(sql, values);
    for (const kind of tenantKinds) seen.set(kind, await assertUnusedBehind(read, kind, "0", use));
    return seen;
  }

  /** One environment, or those after an id, ordered by id. */
  async list(
    region: string,
    range: { readonly id: string } | { readonly afterId: string; readonly limit: number },
  ): Promise<readonly StoredEnvironment[]> {
    const isOne = "id" in range;
    const rows = await this.database.read<EnvironmentRow | { readonly id: null }>(
      `SELECT ${environmentColumns} FROM regions r LEFT JOIN LATERAL (
         SELECT * FROM environments
         WHERE region = r.name AND ${isOne ? "id = $2" : 'id COLLATE "C" > $2'}
         ORDER BY id COLLATE "C" LIMIT $3
       ) e ON true
       WHERE r.name = $1 ORDER BY e.id COLLATE "C"`,
      [region, isOne ? range.id : range.afterId, isOne ? 1 : range.limit],
    );
    if (rows.length === 0) throw unknownRegion(region);
    return rows.flatMap((row) => (row.id === null ? [] : [decodeEnvironment(row)]));
  }
}

type Read = (sql: string, values: readonly unknown[]) => Promise<readonly ObjectRow[]>;
/** The version up to which no object of a kind uses an environment. */
type SeenVersions = ReadonlyMap<KindName, string>;

interface EnvironmentUse {
  readonly region: string;
  readonly id: string;
  /** Names the part of the call that is not possible while it is used; undefined means the whole call. */
  readonly refused?: string | undefined;
}

async function assertStillUnused(session: Session, use: EnvironmentUse, seen: SeenVersions): Promise<void> {
  const read: Read = (sql, values) => session.query(sql, values);
  for (const [kind, version] of seen) await assertUnusedBehind(read, kind, version, use);
  await assertNoAppUses(session, use.region, use.id, use.refused);
}

/** Throws if a row after the version uses the environment; resolves with the version of the last row. */
async function assertUnusedBehind(
  read: Read,
  kind: KindName,
  version: string,
  { region, id, refused }: EnvironmentUse,
): Promise<string> {
  for (let seen = version; ; ) {
    const rows = await read(
      `SELECT ${objectColumns} FROM objects o
       WHERE o.region = $1 AND o.kind = $2 AND o.version > $3 AND o.desired <> 'stopped'
       ORDER BY o.version LIMIT $4`,
      [region, kind, seen, batchMax],
    );
    const last = rows.at(-1);
    if (last === undefined) return seen;
    assertUnused(
      id,
      kind,
      rows.map((row) => decodeRow(kind, row)),
      refused,
    );
    seen = last.version;
  }
}

async function write(
  session: Session,
  region: string,
  id: string,
  { workspaceId, projectId, secrets }: EnvironmentContent,
): Promise<StoredEnvironment> {
  const [counted] = await session.query<{ environment_counter: string }>(
    "UPDATE regions SET environment_counter = environment_counter + 1 WHERE name = $1 RETURNING environment_counter",
    [region],
  );
  const version = BigInt(counted?.environment_counter ?? 0);
  const config = create(SecretsConfigSchema, { secrets: Object.fromEntries(secrets) });
  const bytes = Buffer.from(toBinary(SecretsConfigSchema, config));
  await session.query(
    `INSERT INTO environments (region, id, workspace_id, project_id, secrets, version)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (region, id) DO UPDATE SET
       workspace_id = excluded.workspace_id, project_id = excluded.project_id,
       secrets = excluded.secrets, version = excluded.version`,
    [region, id, workspaceId, projectId, bytes, version],
  );
  return { id, workspaceId, projectId, secrets: new Map(secrets), version };
}
