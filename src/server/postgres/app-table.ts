// Apps and their releases, in the table `apps`. A change locks its region, so that an app and the rows of its
// deployments are decided on current data and change together.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type App, AppSchema } from "../../gen/krane/admin/v1/app_pb.ts";
import {
  appNameTaken,
  appNews,
  assertNoApp,
  environmentOfApp,
  isSameApp,
  nameOfApp,
  type RowChange,
  removalOfApp,
  rowChanges,
  withVersion,
  writing,
} from "../apps/app-rules.ts";
import { isActive } from "../apps/releases.ts";
import { stoppedDeployments, type WrittenRow } from "../memory-apps.ts";
import { unknownRegion } from "../row-rules.ts";
import type { AppFacts, Author, ChangeAppOptions, ChangedApp, DecideApp } from "../store.ts";
import type { Database, Session } from "./database.ts";
import { readEnvironment } from "./environment-rows.ts";
import { addHistory } from "./history-table.ts";
import {
  announce,
  lockRegion,
  type ObjectTable,
  readRow,
  stopOwnedBy,
  takeVersions,
  writeRow,
} from "./object-table.ts";
import { readAppObjects } from "./report-tables.ts";

interface AppRow {
  readonly id: string;
  readonly body: Buffer;
  readonly version: string;
}

type Query = Session["query"];

export class AppTable {
  private readonly database: Database;
  private readonly objects: Pick<ObjectTable, "transact">;

  constructor(database: Database, objects: Pick<ObjectTable, "transact">) {
    this.database = database;
    this.objects = objects;
  }

  /** With the newest version of the region, if it took one. */
  async change(
    region: string,
    id: string,
    decide: DecideApp,
    author: Author,
    { dryRun = false, environmentId }: ChangeAppOptions = {},
  ): Promise<ChangedApp & { readonly counter?: bigint }> {
    try {
      return await this.objects.transact(async (session) => {
        await lockRegion(session, region);
        const facts = await readFacts(session.query, region, id, environmentId);
        const changed = await write(session, region, id, facts, decide(facts), author);
        if (dryRun) throw new DryRun(changed);
        return changed;
      });
    } catch (error) {
      if (!(error instanceof DryRun)) throw error;
      const { before, after, stopped } = error.changed;
      return { before, after: after && withVersion(after, before?.version ?? 0n), stopped };
    }
  }

  async facts(region: string, id: string): Promise<AppFacts> {
    const query: Query = (sql, values = []) => this.database.read(sql, values);
    const known = await query("SELECT 1 FROM regions WHERE name = $1", [region]);
    if (known.length === 0) throw unknownRegion(region);
    return readFacts(query, region, id);
  }

  async list(region: string, afterId: string, limit: number): Promise<readonly AppFacts[]> {
    const rows = await this.database.read<AppRow | { readonly id: null }>(
      `SELECT a.id, a.body, a.version FROM regions r LEFT JOIN LATERAL (
         SELECT * FROM apps WHERE region = r.name AND id COLLATE "C" > $2 ORDER BY id COLLATE "C" LIMIT $3
       ) a ON true
       WHERE r.name = $1 ORDER BY a.id COLLATE "C"`,
      [region, afterId, limit],
    );
    if (rows.length === 0) throw unknownRegion(region);
    const apps = rows.flatMap((row) => (row.id === null ? [] : [{ id: row.id, app: decodeApp(row) }]));
    const query: Query = (sql, values = []) => this.database.read(sql, values);
    const ids = apps.map(({ id }) => id);
    const deployments = await readAppObjects(query, region, "deployment", ids);
    const routes = await readAppObjects(query, region, "route", ids);
    const facts: AppFacts[] = [];
    for (const { id, app } of apps) {
      const own = deployments.filter(({ row }) => row.appId === id);
      const environment = await readEnvironment({ query }, region, environmentOfApp(app) ?? "");
      const route = routes.find(({ row }) => row.appId === id);
      facts.push({ app, deployments: own, route, environment, leftIds: [] });
    }
    return facts;
  }

  active(): Promise<readonly { readonly region: string; readonly id: string }[]> {
    return this.database.read("SELECT region, id FROM apps WHERE active ORDER BY region, id", []);
  }
}

/** Rolls the transaction back. */
class DryRun extends Error {
  readonly changed: ChangedApp;

  constructor(changed: ChangedApp) {
    super("nothing was written");
    this.changed = changed;
  }
}

async function write(
  session: Session,
  region: string,
  id: string,
  facts: AppFacts,
  wanted: App | "removed" | undefined,
  author: Author,
): Promise<ChangedApp & { readonly counter?: bigint }> {
  const before = facts.app;
  if (wanted === undefined) return { before, after: before, stopped: [] };
  const { written, counter } = await writeRows(session, region, rowChanges(id, wanted, facts), author);
  const stopped = stoppedDeployments(written);
  const counted = { stopped, ...(counter !== undefined && { counter }) };
  if (wanted === "removed") {
    await session.query("DELETE FROM apps WHERE region = $1 AND id = $2", [region, id]);
    if (before !== undefined) await addHistory(session, region, removalOfApp(before, author));
    return { before, after: undefined, ...counted };
  }
  if (isSameApp(before, wanted)) return { before, after: before, ...counted };
  const after = await writeApp(session, region, id, wanted);
  await addHistory(session, region, ...appNews(before, after, author));
  return { before, after, ...counted };
}

async function writeRows(
  session: Session,
  region: string,
  changes: readonly RowChange[],
  author: Author,
): Promise<{ readonly written: readonly WrittenRow[]; readonly counter?: bigint }> {
  const written: WrittenRow[] = [];
  let counter: bigint | undefined;
  for (const change of changes) {
    await writing(change, async ({ kind, id, decide }) => {
      const wanted = decide(await readRow(session, region, kind, id));
      const version = await takeVersions(session, region, 1);
      const row = { id, ...wanted, version };
      await writeRow(session, region, kind, row);
      const event = wanted.desired === "stopped" ? "stopped" : "set";
      await addHistory(session, region, { ...author, kind, id, version, event, outcome: "" });
      counter = (await stopOwnedBy(session, region, kind, row, author)) ?? version;
      written.push({ kind, row });
    });
  }
  if (counter === undefined) return { written };
  await announce(session, region, counter);
  return { written, counter };
}

async function writeApp(session: Session, region: string, id: string, app: App): Promise<App> {
  const name = nameOfApp(app);
  const [holder] = await session.query<{ id: string }>(
    "SELECT id FROM apps WHERE region = $1 AND name = $2 AND id <> $3",
    [region, name, id],
  );
  if (holder !== undefined) throw appNameTaken(name, holder.id);
  // Shared with environments; their versions only have to differ from the earlier ones.
  const [counted] = await session.query<{ environment_counter: string }>(
    "UPDATE regions SET environment_counter = environment_counter + 1 WHERE name = $1 RETURNING environment_counter",
    [region],
  );
  const after = withVersion(app, BigInt(counted?.environment_counter ?? 0));
  await session.query(
    `INSERT INTO apps (region, id, name, environment_id, active, body, version)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (region, id) DO UPDATE SET
       name = excluded.name, environment_id = excluded.environment_id, active = excluded.active,
       body = excluded.body, version = excluded.version`,
    [
      region,
      id,
      name,
      environmentOfApp(after) ?? "",
      isActive(after),
      Buffer.from(toBinary(AppSchema, after)),
      after.version,
    ],
  );
  return after;
}

async function readFacts(
  query: Query,
  region: string,
  id: string,
  environmentId?: string,
): Promise<AppFacts> {
  const [row] = await query<AppRow>(
    "SELECT a.id, a.body, a.version FROM apps a WHERE a.region = $1 AND a.id = $2",
    [region, id],
  );
  const app = row && decodeApp(row);
  const left =
    app === undefined
      ? await query<{ id: string }>("SELECT id FROM objects WHERE region = $1 AND app_id = $2", [region, id])
      : [];
  const [route] = await readAppObjects(query, region, "route", [id]);
  return {
    app,
    deployments: await readAppObjects(query, region, "deployment", [id]),
    route,
    environment: await readEnvironment({ query }, region, environmentOfApp(app) ?? environmentId ?? ""),
    leftIds: left.map((each) => each.id),
  };
}

function decodeApp({ body, version }: AppRow): App {
  // A copy: bytes fields would otherwise be Buffers that keep the whole result in memory.
  return withVersion(fromBinary(AppSchema, new Uint8Array(body)), BigInt(version));
}

/** Throws `in_use` if an app belongs to the environment; `refused` names the part of the call that is not possible. */
export async function assertNoAppUses(
  session: Session,
  region: string,
  environmentId: string,
  refused?: string,
): Promise<void> {
  const [user] = await session.query<{ id: string }>(
    "SELECT id FROM apps WHERE region = $1 AND environment_id = $2 ORDER BY id LIMIT 1",
    [region, environmentId],
  );
  assertNoApp(environmentId, user?.id, refused);
}
