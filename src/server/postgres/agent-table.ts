// What is known of the agents, in the table `agents`, and what is kept for them in
// `releases`. Whoever reports or releases holds the row of the region, so that a release
// is not lost between the report that it goes by and the next one.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import { findHeld, type Release, releasesFor } from "../held-releases.ts";
import type { Kind } from "../kinds.ts";
import { unknownRegion } from "../row-rules.ts";
import type { AgentRecord, AgentReport, Author, HeldDeletion } from "../store.ts";
import { kindOfController, troubleNews } from "../trouble-news.ts";
import type { Database, Session } from "./database.ts";
import { addHistory } from "./history-table.ts";

interface StateRow {
  readonly state: Buffer | null;
  readonly state_at_ms: string | null;
}

export class AgentTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async reportHeartbeat(region: string, atMs: number): Promise<void> {
    const sql = "UPDATE agents SET heartbeat_at_ms = $2 WHERE region = $1 RETURNING region";
    const rows = await this.database.transact((session) => session.query(sql, [region, atMs]));
    if (rows.length === 0) throw unknownRegion(region);
  }

  reportAgent(region: string, report: AgentReport): Promise<readonly HeldDeletion[]> {
    return this.database.transact(async (session) => {
      const before = await lockState(session, region);
      const state = Buffer.from(toBinary(ReportAgentStateRequestSchema, report.report));
      const sql = "UPDATE agents SET state = $2, state_at_ms = $3 WHERE region = $1";
      await session.query(sql, [region, state, report.atMs]);
      const releases = await keepReleases(session, region, report);
      await addHistory(session, region, ...troubleNews(before, report));
      return releases;
    });
  }

  releaseDeletion(region: string, deletion: HeldDeletion, author: Author): Promise<boolean> {
    return this.database.transact(async (session) => {
      const state = await lockState(session, region);
      const held = findHeld(state?.report.blockedDeletions ?? [], deletion);
      if (held === undefined) return false;
      const { controller, key, id } = held;
      await session.query(
        `INSERT INTO releases (region, controller, key, at_ms, author) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (region, controller, key) DO UPDATE SET at_ms = excluded.at_ms, author = excluded.author`,
        [region, controller, key, Math.trunc(author.atMs), author.by],
      );
      const kind = kindOfController(controller);
      if (kind === undefined) return true;
      const [row] = await session.query<{ version: string }>(
        "SELECT version FROM objects WHERE region = $1 AND kind = $2 AND id = $3",
        [region, kind, id],
      );
      const version = BigInt(row?.version ?? 0);
      await addHistory(session, region, { ...author, kind, id, version, event: "released", outcome: "" });
      return true;
    });
  }

  async agents(region?: string): Promise<readonly AgentRecord[]> {
    const rows = await this.database.read<
      StateRow & {
        readonly region: string;
        readonly counter: string;
        readonly heartbeat_at_ms: string | null;
      } & Readonly<Record<Kind, string>>
    >(
      `SELECT a.region, r.counter, a.heartbeat_at_ms, a.state, a.state_at_ms,
              ${newestOf("deployment")}, ${newestOf("sentinel")}, ${newestOf("policy")}
       FROM agents a JOIN regions r ON r.name = a.region
       WHERE $1::text IS NULL OR a.region = $1 ORDER BY r.ordinal`,
      [region ?? null],
    );
    return rows.map((row) => {
      const state = decodeState(row);
      return {
        region: row.region,
        newestVersion: BigInt(row.counter),
        newestOfKind: {
          deployment: BigInt(row.deployment),
          sentinel: BigInt(row.sentinel),
          policy: BigInt(row.policy),
        },
        ...(row.heartbeat_at_ms !== null && { heartbeatAtMs: Number(row.heartbeat_at_ms) }),
        ...(state !== undefined && { state }),
      };
    });
  }
}

/** The end of an index, whatever the number of rows. */
function newestOf(kind: Kind): string {
  return `(SELECT coalesce(max(o.version), 0) FROM objects o WHERE o.region = a.region AND o.kind = '${kind}') AS ${kind}`;
}

async function lockState(session: Session, region: string): Promise<AgentReport | undefined> {
  const [row] = await session.query<StateRow>(
    "SELECT state, state_at_ms FROM agents WHERE region = $1 FOR UPDATE",
    [region],
  );
  if (row === undefined) throw unknownRegion(region);
  return decodeState(row);
}

function decodeState({ state, state_at_ms }: StateRow): AgentReport | undefined {
  if (state === null) return undefined;
  return {
    report: fromBinary(ReportAgentStateRequestSchema, new Uint8Array(state)),
    atMs: Number(state_at_ms),
  };
}

async function keepReleases(
  session: Session,
  region: string,
  report: AgentReport,
): Promise<readonly HeldDeletion[]> {
  const rows = await session.query<{ controller: string; key: string; at_ms: string }>(
    "SELECT controller, key, at_ms FROM releases WHERE region = $1 ORDER BY controller, key",
    [region],
  );
  const releases: Release[] = rows.map(({ controller, key, at_ms }) => ({
    controller,
    key,
    atMs: Number(at_ms),
  }));
  const kept = releasesFor(releases, report);
  for (const release of releases) {
    if (kept.includes(release)) continue;
    const { controller, key } = release;
    const sql = "DELETE FROM releases WHERE region = $1 AND controller = $2 AND key = $3";
    await session.query(sql, [region, controller, key]);
  }
  return kept;
}
