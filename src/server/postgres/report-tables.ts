// What agents said, in the tables `agents`, `reports` and `instances`. The reports of a
// region wait for one another at its row in `agents`: two that claim the same address at
// the same time would otherwise both be refused.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import { ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { ReportSentinelStatusRequestSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { withoutRepetition } from "../instance-reports.ts";
import type { Kind } from "../kinds.ts";
import { deploymentOutcome, sentinelOutcome } from "../outcome-text.ts";
import { unknownRegion } from "../row-rules.ts";
import type { AgentRecord, AgentReport, DeploymentReport, Instance, SentinelReport } from "../store.ts";
import type { Database, Session } from "./database.ts";

interface Subject {
  readonly region: string;
  readonly kind: Kind;
  readonly name: string;
}

interface Reported {
  readonly atMs: number;
  readonly present: boolean;
  readonly outcome: string;
  readonly body: Uint8Array;
}

export class ReportTables {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  reportDeployment(region: string, name: string, report: DeploymentReport): Promise<boolean> {
    const instances = withoutRepetition(report.instances);
    const outcome = deploymentOutcome({ ...report, instances });
    const reported = { atMs: report.atMs, present: report.exists, outcome, body: new Uint8Array() };
    return this.database.transact(async (session) => {
      const id = await replaceReport(session, { region, kind: "deployment", name }, reported);
      if (id === undefined) return false;
      await replaceInstances(session, region, id, instances);
      return true;
    });
  }

  reportSentinel(
    region: string,
    sentinel: { readonly k8sName: string; readonly id: string },
    report: SentinelReport,
  ): Promise<boolean> {
    const { atMs, ...fields } = report;
    const body = toBinary(
      ReportSentinelStatusRequestSchema,
      create(ReportSentinelStatusRequestSchema, fields),
    );
    const reported = { atMs, present: true, outcome: sentinelOutcome(report), body };
    const subject = { region, kind: "sentinel", name: sentinel.k8sName } as const;
    return this.database.transact(
      async (session) => (await replaceReport(session, subject, reported, sentinel.id)) !== undefined,
    );
  }

  async reportHeartbeat(region: string, atMs: number): Promise<void> {
    const sql = "UPDATE agents SET heartbeat_at_ms = $2 WHERE region = $1 RETURNING region";
    const rows = await this.database.transact((session) => session.query(sql, [region, atMs]));
    if (rows.length === 0) throw unknownRegion(region);
  }

  async reportAgent(region: string, { report, atMs }: AgentReport): Promise<void> {
    const state = Buffer.from(toBinary(ReportAgentStateRequestSchema, report));
    const sql = "UPDATE agents SET state = $2, state_at_ms = $3 WHERE region = $1 RETURNING region";
    const rows = await this.database.transact((session) => session.query(sql, [region, state, atMs]));
    if (rows.length === 0) throw unknownRegion(region);
  }

  async deploymentReport(region: string, id: string): Promise<DeploymentReport | undefined> {
    const rows = await this.database.read<{
      readonly at_ms: string | null;
      readonly present: boolean;
      readonly body: Buffer | null;
    }>(
      `SELECT p.at_ms, p.present, i.body
       FROM regions r
       LEFT JOIN reports p ON p.region = r.name AND p.kind = 'deployment' AND p.id = $2
       LEFT JOIN instances i ON i.region = p.region AND i.id = p.id
       WHERE r.name = $1 ORDER BY i.position`,
      [region, id],
    );
    const first = rows[0];
    if (first === undefined) throw unknownRegion(region);
    if (first.at_ms === null) return undefined;
    const instances = rows.flatMap(({ body }) => (body === null ? [] : [fromBinary(InstanceSchema, body)]));
    return { exists: first.present, instances, atMs: Number(first.at_ms) };
  }

  async sentinelReport(region: string, id: string): Promise<SentinelReport | undefined> {
    const [row] = await this.database.read<{ readonly at_ms: string | null; readonly body: Buffer }>(
      `SELECT p.at_ms, p.body FROM regions r
       LEFT JOIN reports p ON p.region = r.name AND p.kind = 'sentinel' AND p.id = $2
       WHERE r.name = $1`,
      [region, id],
    );
    if (row === undefined) throw unknownRegion(region);
    if (row.at_ms === null) return undefined;
    const { availableReplicas, health, runningImage } = fromBinary(
      ReportSentinelStatusRequestSchema,
      row.body,
    );
    return { availableReplicas, health, runningImage, atMs: Number(row.at_ms) };
  }

  async agents(): Promise<readonly AgentRecord[]> {
    const rows = await this.database.read<{
      readonly region: string;
      readonly heartbeat_at_ms: string | null;
      readonly state: Buffer | null;
      readonly state_at_ms: string | null;
    }>(
      `SELECT a.region, a.heartbeat_at_ms, a.state, a.state_at_ms
       FROM agents a JOIN regions r ON r.name = a.region ORDER BY r.ordinal`,
      [],
    );
    return rows.map(({ region, heartbeat_at_ms, state, state_at_ms }) => ({
      region,
      ...(heartbeat_at_ms === null ? {} : { heartbeatAtMs: Number(heartbeat_at_ms) }),
      ...(state === null
        ? {}
        : { state: { report: fromBinary(ReportAgentStateRequestSchema, state), atMs: Number(state_at_ms) } }),
    }));
  }
}

/** The id of the object that the report is on; undefined when there is none with that name, and id if given. */
async function replaceReport(
  session: Session,
  { region, kind, name }: Subject,
  { atMs, present, outcome, body }: Reported,
  expectedId = "",
): Promise<string | undefined> {
  const locked = await session.query("SELECT 1 FROM agents WHERE region = $1 FOR UPDATE", [region]);
  if (locked.length === 0) throw unknownRegion(region);
  const [object] = await session.query<{
    readonly id: string;
    readonly version: string;
    readonly outcome: string | null;
    readonly reported_version: string | null;
  }>(
    `SELECT o.id, o.version, p.outcome, p.version AS reported_version
     FROM objects o LEFT JOIN reports p USING (region, kind, id)
     WHERE o.region = $1 AND o.kind = $2 AND o.name = $3 FOR KEY SHARE OF o`,
    [region, kind, name],
  );
  if (object === undefined || (expectedId !== "" && expectedId !== object.id)) return undefined;
  const { id, version } = object;
  await session.query(
    `INSERT INTO reports (region, kind, id, at_ms, present, outcome, version, body)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (region, kind, id) DO UPDATE SET
       at_ms = excluded.at_ms, present = excluded.present, outcome = excluded.outcome,
       version = excluded.version, body = excluded.body`,
    [region, kind, id, atMs, present, outcome, version, Buffer.from(body)],
  );
  if (object.outcome !== outcome || object.reported_version !== version) {
    await session.query(
      `INSERT INTO history (region, at_ms, author, kind, id, version, event, outcome)
       VALUES ($1, $2, 'agent', $3, $4, $5, 'reported', $6)`,
      [region, atMs, kind, id, version, outcome],
    );
  }
  return id;
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
