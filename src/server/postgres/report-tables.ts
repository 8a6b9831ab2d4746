// Agents' reports on objects, in the tables `reports` and `instances`. The reports of a
// region wait for one another at its row in `agents`: two that claim the same address at
// the same time would otherwise both fail.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { type KindName, kindOf, type ReportOf } from "../../kinds/kinds.ts";
import type { Instance, ObjectReport } from "../../kinds/report.ts";
import { withoutRepetition } from "../kept-reports.ts";
import { formatRank, isOlderReport, parseRank, type RankedAt, type ReceivedReport } from "../report-rank.ts";
import { unknownRegion } from "../row-rules.ts";
import type { StoredObject } from "../store.ts";
import type { Database, Session } from "./database.ts";
import { addHistory } from "./history-table.ts";
import { decodeRow, hasObject, type MaybeObjectRow, type ObjectRow, objectColumns } from "./object-rows.ts";

interface ReportedObject {
  readonly id: string;
  readonly version: string;
  /** Those of the last report; null before the first. */
  readonly outcome: string | null;
  readonly reportedVersion: string | null;
  readonly last?: RankedAt;
}

interface NewReport {
  readonly object: ReportedObject;
  readonly report: ObjectReport;
  readonly ranked: RankedAt;
}

/** Limits the bytes of specs in one batch. The last spec may exceed it. */
const answerBytesMax = 4 * 1024 * 1024;

export class ReportTables {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  reportMany(
    region: string,
    kind: KindName,
    received: readonly ReceivedReport<ObjectReport>[],
  ): Promise<readonly boolean[]> {
    return this.database.transact(async (session) => {
      const locked = await session.query("SELECT 1 FROM agents WHERE region = $1 FOR UPDATE", [region]);
      if (locked.length === 0) throw unknownRegion(region);
      const known = await readLast(
        session,
        region,
        kind,
        received.map(({ name }) => name),
      );
      const found = received.map(({ name, id }) => {
        const object = known.get(name);
        return object === undefined || (id !== "" && id !== object.id) ? undefined : object;
      });
      const inOrder: NewReport[] = [];
      const newest = new Map<string, NewReport>();
      for (const [index, { report, rank }] of received.entries()) {
        const object = found[index];
        if (object === undefined) continue;
        const before = newest.get(object.id)?.ranked ?? object.last;
        const ranked = { rank, atMs: report.atMs };
        if (before !== undefined && isOlderReport(ranked, before)) continue;
        const accepted = { object, ranked, report: withoutRepetition(report) };
        newest.set(object.id, accepted);
        inOrder.push(accepted);
      }
      await replaceReports(session, region, kind, [...newest.values()]);
      await replaceInstances(session, region, inOrder);
      return found.map((object) => object !== undefined);
    });
  }

  /** One object, or those after an id, ordered by id. Instances are those of the newest report when they are read. */
  async objects<K extends KindName>(
    region: string,
    kind: K,
    range:
      | { readonly id: string }
      | { readonly afterId: string; readonly limit: number; readonly ids?: readonly string[] | undefined },
  ): Promise<readonly StoredObject<K>[]> {
    const isOne = "id" in range;
    const ids = isOne ? undefined : range.ids;
    const rows = await this.database.read<MaybeObjectRow & ReportRow>(
      `SELECT ${objectColumns}, ${reportColumns}
       FROM regions r LEFT JOIN LATERAL (
         SELECT *, sum(octet_length(spec)) OVER (ORDER BY id COLLATE "C") AS bytes FROM (
           SELECT * FROM objects
           WHERE region = r.name AND kind = $2 AND ${isOne ? "id = $3" : 'id COLLATE "C" > $3'}
             ${ids === undefined ? "" : "AND id = ANY ($5::text[])"}
           ORDER BY id COLLATE "C" LIMIT $4
         ) found
       ) o ON o.bytes - octet_length(o.spec) < ${answerBytesMax}
       LEFT JOIN reports p ON p.region = o.region AND p.kind = o.kind AND p.id = o.id
       WHERE r.name = $1 ORDER BY o.id COLLATE "C"`,
      [
        ...[region, kind, isOne ? range.id : range.afterId, isOne ? 1 : range.limit],
        ...(ids === undefined ? [] : [ids]),
      ],
    );
    if (rows.length === 0) throw unknownRegion(region);
    const found = rows.filter(hasObject);
    const read: Session["query"] = (sql, values = []) => this.database.read(sql, values);
    const lists = kindOf(kind).reports?.listInstances === true;
    const instances = lists ? await readInstances(read, region, found) : new Map();
    return found.map((row) => storedObject(kind, row, instances.get(row.id) ?? []));
  }
}

/** What is desired of apps, with the last report on each; ordered by id. */
export async function readAppObjects<K extends "deployment" | "route">(
  query: Session["query"],
  region: string,
  kind: K,
  appIds: readonly string[],
): Promise<readonly StoredObject<K>[]> {
  const rows = await query<ObjectRow & ReportRow>(
    `SELECT ${objectColumns}, ${reportColumns} FROM objects o
     LEFT JOIN reports p ON p.region = o.region AND p.kind = o.kind AND p.id = o.id
     WHERE o.region = $1 AND o.app_id = ANY ($2::text[]) AND o.kind = $3 AND o.desired <> 'stopped'
     ORDER BY o.id COLLATE "C"`,
    [region, appIds, kind],
  );
  const lists = kindOf(kind).reports?.listInstances === true;
  const instances = lists ? await readInstances(query, region, rows) : new Map();
  return rows.map((row) => storedObject(kind, row, instances.get(row.id) ?? []));
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

/** By name. They cannot be removed before the transaction ends. */
async function readLast(
  session: Session,
  region: string,
  kind: KindName,
  names: readonly string[],
): Promise<ReadonlyMap<string, ReportedObject>> {
  const rows = await session.query<{
    readonly id: string;
    readonly name: string;
    readonly version: string;
    readonly outcome: string | null;
    readonly reported_version: string | null;
    readonly at_ms: string | null;
    readonly rank: string | null;
  }>(
    `SELECT o.id, o.name, o.version, p.outcome, p.version AS reported_version, p.at_ms, p.rank
     FROM objects o LEFT JOIN reports p USING (region, kind, id)
     WHERE o.region = $1 AND o.kind = $2 AND o.name = ANY ($3::text[]) ORDER BY o.id FOR KEY SHARE OF o`,
    [region, kind, names],
  );
  return new Map(
    rows.map(({ name, at_ms, rank, reported_version: reportedVersion, ...row }) => [
      name,
      {
        ...row,
        reportedVersion,
        ...(at_ms !== null && { last: { rank: parseRank(rank), atMs: Number(at_ms) } }),
      },
    ]),
  );
}

async function replaceReports(
  session: Session,
  region: string,
  kind: KindName,
  reports: readonly NewReport[],
): Promise<void> {
  if (reports.length === 0) return;
  const { reports: rules } = kindOf(kind);
  const outcomes = reports.map(({ report }) => rules?.outcomeOf(report) ?? "");
  await session.query(
    `INSERT INTO reports (region, kind, id, at_ms, present, outcome, version, body, rank)
     SELECT $1, $2, t.*
     FROM unnest($3::text[], $4::bigint[], $5::boolean[], $6::text[], $7::bigint[], $8::bytea[], $9::text[]) AS t
     ON CONFLICT (region, kind, id) DO UPDATE SET
       at_ms = excluded.at_ms, present = excluded.present, outcome = excluded.outcome,
       version = excluded.version, body = excluded.body, rank = excluded.rank`,
    [
      region,
      kind,
      reports.map(({ object }) => object.id),
      reports.map(({ report }) => report.atMs),
      reports.map(({ report: { exists = true } }) => exists),
      outcomes,
      reports.map(({ object }) => object.version),
      reports.map(({ report }) => Buffer.from(rules?.bodyOf(report) ?? new Uint8Array())),
      reports.map(({ ranked: { rank } }) => (rank ? formatRank(rank) : null)),
    ],
  );
  const news = reports.flatMap(({ object: { id, version, ...before }, ranked: { atMs } }, index) => {
    const outcome = outcomes[index] ?? "";
    if (before.outcome === outcome && before.reportedVersion === version) return [];
    return [{ by: "agent", atMs, kind, id, version: BigInt(version), event: "reported", outcome } as const];
  });
  await addHistory(session, region, ...news);
}

/** For kinds that list instances. */
async function replaceInstances(
  session: Session,
  region: string,
  reports: readonly NewReport[],
): Promise<void> {
  const listed = reports.filter(({ report: { instances } }) => instances !== undefined);
  if (listed.length === 0) return;
  // From the last one on: an address belongs to the one that was reported last, and so does a deployment.
  const taken = new Set<string>();
  const replaced = new Set<string>();
  const rows = listed.toReversed().flatMap(({ object: { id }, report: { instances = [] } }) => {
    const own = replaced.has(id) ? [] : instances.filter(({ address }) => !taken.has(address));
    replaced.add(id);
    for (const { address } of instances) if (address !== "") taken.add(address);
    return own.map((instance, position) => ({ id, instance, position }));
  });
  await session.query(
    "DELETE FROM instances WHERE region = $1 AND (id = ANY ($2::text[]) OR (address <> '' AND address = ANY ($3::text[])))",
    [region, [...replaced], [...taken]],
  );
  if (rows.length === 0) return;
  await session.query(
    `INSERT INTO instances (region, id, k8s_name, position, address, body)
     SELECT $1, id, k8s_name, position, address, body
     FROM unnest($2::text[], $3::text[], $4::integer[], $5::text[], $6::bytea[])
       AS t (id, k8s_name, position, address, body)`,
    [
      region,
      rows.map(({ id }) => id),
      rows.map(({ instance }) => instance.k8sName),
      rows.map(({ position }) => position),
      rows.map(({ instance }) => instance.address),
      rows.map(({ instance }) => Buffer.from(toBinary(InstanceSchema, instance))),
    ],
  );
}
