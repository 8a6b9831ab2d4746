// Agents' reports on objects, in the tables `reports` and `instances`. The reports of a
// region wait for one another at its row in `agents`: two that claim the same address at
// the same time would otherwise both fail.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { type KindName, kindOf, type ReportOf } from "../../kinds/kinds.ts";
import type { Instance, ObjectReport } from "../../kinds/report.ts";
import { withoutRepetition } from "../kept-reports.ts";
import { formatRank, isOlderReport, parseRank, type ReportRank } from "../report-rank.ts";
import { unknownRegion } from "../row-rules.ts";
import type { StoredObject } from "../store.ts";
import type { Database, Session } from "./database.ts";
import { addHistory } from "./history-table.ts";
import { decodeRow, hasObject, type MaybeObjectRow, type ObjectRow, objectColumns } from "./object-rows.ts";

interface Subject {
  readonly region: string;
  readonly kind: KindName;
  readonly name: string;
}

interface Reported {
  readonly atMs: number;
  readonly present: boolean;
  readonly outcome: string;
  readonly body: Uint8Array;
  readonly rank: ReportRank | undefined;
}

/** Limits the bytes of specs in one batch. The last spec may exceed it. */
const answerBytesMax = 4 * 1024 * 1024;

export class ReportTables {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  report(
    region: string,
    kind: KindName,
    { name, id: expectedId }: { readonly name: string; readonly id: string },
    report: ObjectReport,
    rank?: ReportRank,
  ): Promise<boolean> {
    const { reports } = kindOf(kind);
    const kept = withoutRepetition(report);
    const { atMs, exists: present = true, instances } = kept;
    const outcome = reports?.outcomeOf(kept) ?? "";
    const body = reports?.bodyOf(kept) ?? new Uint8Array();
    const reported = { atMs, present, outcome, body, rank };
    return this.database.transact(async (session) => {
      const replaced = await replaceReport(session, { region, kind, name }, reported, expectedId);
      if (replaced === "unknown") return false;
      if (replaced === "older") return true;
      if (instances !== undefined) await replaceInstances(session, region, replaced.id, instances);
      return true;
    });
  }

  /** One object, or those after an id, ordered by id. Instances are those of the newest report when they are read. */
  async objects<K extends KindName>(
    region: string,
    kind: K,
    range: { readonly id: string } | { readonly afterId: string; readonly limit: number },
  ): Promise<readonly StoredObject<K>[]> {
    const isOne = "id" in range;
    const rows = await this.database.read<MaybeObjectRow & ReportRow>(
      `SELECT ${objectColumns}, ${reportColumns}
       FROM regions r LEFT JOIN LATERAL (
         SELECT *, sum(octet_length(spec)) OVER (ORDER BY id COLLATE "C") AS bytes FROM (
           SELECT * FROM objects
           WHERE region = r.name AND kind = $2 AND ${isOne ? "id = $3" : 'id COLLATE "C" > $3'}
           ORDER BY id COLLATE "C" LIMIT $4
         ) found
       ) o ON o.bytes - octet_length(o.spec) < ${answerBytesMax}
       LEFT JOIN reports p ON p.region = o.region AND p.kind = o.kind AND p.id = o.id
       WHERE r.name = $1 ORDER BY o.id COLLATE "C"`,
      [region, kind, isOne ? range.id : range.afterId, isOne ? 1 : range.limit],
    );
    if (rows.length === 0) throw unknownRegion(region);
    const found = rows.filter(hasObject);
    const read: Session["query"] = (sql, values = []) => this.database.read(sql, values);
    const lists = kindOf(kind).reports?.listInstances === true;
    const instances = lists ? await readInstances(read, region, found) : new Map();
    return found.map((row) => storedObject(kind, row, instances.get(row.id) ?? []));
  }
}

/** The desired deployments of apps, with the last report on each; ordered by id. */
export async function readAppDeployments(
  query: Session["query"],
  region: string,
  appIds: readonly string[],
): Promise<readonly StoredObject<"deployment">[]> {
  const rows = await query<ObjectRow & ReportRow>(
    `SELECT ${objectColumns}, ${reportColumns} FROM objects o
     LEFT JOIN reports p ON p.region = o.region AND p.kind = o.kind AND p.id = o.id
     WHERE o.region = $1 AND o.app_id = ANY ($2::text[]) AND o.kind = 'deployment' AND o.desired <> 'stopped'
     ORDER BY o.id COLLATE "C"`,
    [region, appIds],
  );
  const instances = await readInstances(query, region, rows);
  return rows.map((row) => storedObject("deployment", row, instances.get(row.id) ?? []));
}

async function readInstances(
  query: Session["query"],
  region: string,
  objects: readonly { readonly id: string }[],
): Promise<ReadonlyMap<string, readonly Instance[]>> {
  if (objects.length === 0) return new Map();
  const rows = await query<{ readonly id: string; readonly body: Buffer }>(
    "SELECT id, body FROM instances WHERE region = $1 AND id = ANY ($2::text[]) ORDER BY id, position",
    [region, objects.map(({ id }) => id)],
  );
  const byId = new Map<string, Instance[]>();
  for (const { id, body } of rows) {
    const instance = fromBinary(InstanceSchema, body);
    const known = byId.get(id);
    if (known === undefined) byId.set(id, [instance]);
    else known.push(instance);
  }
  return byId;
}

/** From a LEFT JOIN, where nothing was reported yet. */
export interface ReportRow {
  readonly at_ms: string | null;
  readonly present: boolean;
  readonly body: Buffer;
  readonly reported_version: string | null;
}

export const reportColumns = "p.at_ms, p.present, p.body, p.version AS reported_version";

export function storedObject<K extends KindName>(
  kind: K,
  row: ObjectRow & ReportRow,
  instances: readonly Instance[],
): StoredObject<K> {
  const object = { row: decodeRow(kind, row), reportedVersion: BigInt(row.reported_version ?? 0) };
  if (row.at_ms === null) return object;
  const { present: exists, body, at_ms } = row;
  const report = kindOf(kind).reports?.fromStored({ atMs: Number(at_ms), exists, instances, body });
  // A report stored under a kind is a report of that kind.
  return report === undefined ? object : { ...object, report: report as ReportOf<K> };
}

/** The id of the reported object; "unknown" when no object has that name, and id if given. */
async function replaceReport(
  session: Session,
  { region, kind, name }: Subject,
  { atMs, present, outcome, body, rank }: Reported,
  expectedId: string,
): Promise<{ readonly id: string } | "unknown" | "older"> {
  const locked = await session.query("SELECT 1 FROM agents WHERE region = $1 FOR UPDATE", [region]);
  if (locked.length === 0) throw unknownRegion(region);
  const [object] = await session.query<{
    readonly id: string;
    readonly version: string;
    readonly outcome: string | null;
    readonly reported_version: string | null;
    readonly at_ms: string | null;
    readonly rank: string | null;
  }>(
    `SELECT o.id, o.version, p.outcome, p.version AS reported_version, p.at_ms, p.rank
     FROM objects o LEFT JOIN reports p USING (region, kind, id)
     WHERE o.region = $1 AND o.kind = $2 AND o.name = $3 FOR KEY SHARE OF o`,
    [region, kind, name],
  );
  if (object === undefined || (expectedId !== "" && expectedId !== object.id)) return "unknown";
  const { id, version } = object;
  const last = { rank: parseRank(object.rank), atMs: Number(object.at_ms) };
  if (object.at_ms !== null && isOlderReport({ rank, atMs }, last)) return "older";
  await session.query(
    `INSERT INTO reports (region, kind, id, at_ms, present, outcome, version, body, rank)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (region, kind, id) DO UPDATE SET
       at_ms = excluded.at_ms, present = excluded.present, outcome = excluded.outcome,
       version = excluded.version, body = excluded.body, rank = excluded.rank`,
    [region, kind, id, atMs, present, outcome, version, Buffer.from(body), rank ? formatRank(rank) : null],
  );
  if (object.outcome !== outcome || object.reported_version !== version) {
    const entry = {
      by: "agent",
      atMs,
      kind,
      id,
      version: BigInt(version),
      event: "reported",
      outcome,
    } as const;
    await addHistory(session, region, entry);
  }
  return { id };
}

async function replaceInstances(
  session: Session,
  region: string,
  id: string,
  instances: readonly Instance[],
): Promise<void> {
  const addresses = instances.map(({ address }) => address);
  await session.query(
    `DELETE FROM instances
     WHERE region = $1 AND (id = $2 OR (address <> '' AND address = ANY ($3::text[])))`,
    [region, id, addresses],
  );
  if (instances.length === 0) return;
  await session.query(
    `INSERT INTO instances (region, id, k8s_name, position, address, body)
     SELECT $1, $2, k8s_name, position, address, body
     FROM unnest($3::text[], $4::integer[], $5::text[], $6::bytea[]) AS t (k8s_name, position, address, body)`,
    [
      region,
      id,
      instances.map(({ k8sName }) => k8sName),
      instances.map((_, index) => index),
      addresses,
      instances.map((instance) => Buffer.from(toBinary(InstanceSchema, instance))),
    ],
  );
}
