// The state of the agents, in the table `agents`, and pending releases, in `releases`.
// Reports and releases lock the region's row, so that no release is lost between the
// report it is based on and the next one.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import { type KindName, kindNames, kindOfController, perKind } from "../../kinds/kinds.ts";
import { silentMs } from "../../why/silence.ts";
import { findHeld, type Release, releasesFor } from "../held-releases.ts";
import { knownAfter } from "../known-state.ts";
import { repairNews } from "../repair-news.ts";
import { unknownRegion } from "../row-rules.ts";
import { type Standby, standbysMax } from "../standbys.ts";
import type { AgentRecord, AgentReport, Author, HeldDeletion, RegionMark } from "../store.ts";
import { troubleNews } from "../trouble-news.ts";
import type { Database, Session } from "./database.ts";
import { addHistory } from "./history-table.ts";

interface StateRow {
  readonly state: Buffer | null;
  readonly state_at_ms: string | null;
  readonly known: Buffer | null;
  readonly known_at_ms: string | null;
  readonly counter: string;
}

// The agent called at $2. An outage of the database is a silence too: nothing could be stored meanwhile.
const setHeardSince = `heard_since_ms =
  CASE WHEN $2 - greatest(heartbeat_at_ms, state_at_ms) <= ${silentMs} THEN heard_since_ms ELSE $2 END`;

const stateColumns = "a.state, a.state_at_ms, a.known, a.known_at_ms, r.counter";

export class AgentTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async reportHeartbeat(region: string, atMs: number): Promise<void> {
    const sql = `UPDATE agents SET heartbeat_at_ms = $2, ${setHeardSince} WHERE region = $1 RETURNING region`;
    const rows = await this.database.transact((session) => session.query(sql, [region, atMs]));
    if (rows.length === 0) throw unknownRegion(region);
  }

  async reportStandby(region: string, { instanceId, version, atMs }: Standby): Promise<void> {
    await this.database.transact(async (session) => {
      const rows = await session.query(
        `INSERT INTO standbys (region, instance_id, version, at_ms)
         SELECT name, $2, $3, $4 FROM regions WHERE name = $1
         ON CONFLICT (region, instance_id) DO UPDATE SET version = excluded.version, at_ms = excluded.at_ms
         RETURNING region`,
        [region, instanceId, version, atMs],
      );
      if (rows.length === 0) throw unknownRegion(region);
      const newest = "SELECT instance_id FROM standbys WHERE region = $1 ORDER BY at_ms DESC LIMIT $2";
      const sql = `DELETE FROM standbys WHERE region = $1 AND instance_id NOT IN (${newest})`;
      await session.query(sql, [region, standbysMax]);
    });
  }

  reportAgent(region: string, report: AgentReport): Promise<readonly HeldDeletion[]> {
    return this.database.transact(async (session) => {
      const { counter, ...before } = await lockState(session, region);
      const known = knownAfter(before, report, counter);
      const sql = `UPDATE agents SET state = $3, state_at_ms = $2, known = $4, known_at_ms = $2, ${setHeardSince}
        WHERE region = $1`;
      await session.query(sql, [region, report.atMs, encode(report), encode(known)]);
      const releases = await keepReleases(session, region, report);
      const news = [...repairNews(before.state, report), ...troubleNews(before.known, known)];
      await addHistory(session, region, ...news);
      return releases;
    });
  }

  releaseDeletion(region: string, deletion: HeldDeletion, author: Author): Promise<boolean> {
    return this.database.transact(async (session) => {
      const { state } = await lockState(session, region);
      const held = findHeld(state?.report.blockedDeletions ?? [], deletion);
      if (held === undefined) return false;
      const { controller, key, id } = held;
      await session.query(
        `INSERT INTO releases (region, controller, key, at_ms, author) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (region, controller, key) DO UPDATE SET at_ms = excluded.at_ms, author = excluded.author`,
        [region, controller, key, Math.trunc(author.atMs), author.by],
      );
      const kind = kindOfController(controller)?.name;
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

  async marks(): Promise<readonly RegionMark[]> {
    const rows = await this.database.read<{
      readonly region: string;
      readonly newest: string | null;
      readonly heartbeat_at_ms: string | null;
      readonly state_at_ms: string | null;
    }>(
      `SELECT r.name AS region, h.newest, a.heartbeat_at_ms, a.state_at_ms
       FROM regions r LEFT JOIN history_heads h ON h.region = r.name LEFT JOIN agents a ON a.region = r.name
       ORDER BY r.ordinal`,
      [],
    );
    return rows.map((row) => ({
      region: row.region,
      newestEntry: BigInt(row.newest ?? 0),
      heartbeatAtMs: Number(row.heartbeat_at_ms ?? 0),
      stateAtMs: Number(row.state_at_ms ?? 0),
    }));
  }

  async agents(region?: string): Promise<readonly AgentRecord[]> {
    const rows = await this.database.read<
      StateRow & {
        readonly region: string;
        readonly heartbeat_at_ms: string | null;
        readonly heard_since_ms: string | null;
        readonly standbys: readonly Standby[] | null;
      } & Readonly<Record<KindName, string>>
    >(
      `SELECT a.region, a.heartbeat_at_ms, a.heard_since_ms, ${stateColumns}, ${standbysOf},
              ${kindNames.map(newestOf).join(", ")}
       FROM agents a JOIN regions r ON r.name = a.region
       WHERE $1::text IS NULL OR a.region = $1 ORDER BY r.ordinal`,
      [region ?? null],
    );
    return rows.map((row) => {
      const { counter, ...heard } = decodeState(row);
      return {
        region: row.region,
        newestVersion: counter,
        newestOfKind: perKind((kind) => BigInt(row[kind.name])),
        ...(row.heartbeat_at_ms !== null && { heartbeatAtMs: Number(row.heartbeat_at_ms) }),
        ...(row.heard_since_ms !== null && { heardSinceMs: Number(row.heard_since_ms) }),
        ...(row.standbys !== null && { standbys: row.standbys }),
        ...heard,
      };
    });
  }
}

const standbysOf = `(
  SELECT json_agg(json_build_object('instanceId', s.instance_id, 'version', s.version, 'atMs', s.at_ms)
                  ORDER BY s.at_ms DESC)
  FROM standbys s WHERE s.region = a.region) AS standbys`;

/** Reads the end of an index, so its cost does not grow with the number of rows. */
function newestOf(kind: KindName): string {
  return `(SELECT coalesce(max(o.version), 0) FROM objects o WHERE o.region = a.region AND o.kind = '${kind}') AS ${kind}`;
}

interface Heard extends Pick<AgentRecord, "state" | "known"> {
  readonly counter: bigint;
}

/** Locks the region's row until the transaction ends. */
export async function lockState(session: Session, region: string): Promise<Heard> {
  // In two steps: if the first statement had to wait for the row, a counter read with it would be from before the wait,
  // and an agent that is not behind would look as if it were ahead.
  await session.query("SELECT 1 FROM agents WHERE region = $1 FOR UPDATE", [region]);
  const [row] = await session.query<StateRow>(
    `SELECT ${stateColumns} FROM agents a JOIN regions r ON r.name = a.region WHERE a.region = $1`,
    [region],
  );
  if (row === undefined) throw unknownRegion(region);
  return decodeState(row);
}

function decodeState(row: StateRow): Heard {
  const counter = BigInt(row.counter);
  const state = decode(row.state, row.state_at_ms);
  if (state === undefined) return { counter };
  const known = decode(row.known, row.known_at_ms);
  const isCurrent = known !== undefined && known.atMs === state.atMs;
  return { counter, state, known: isCurrent ? known : knownAfter({ known }, state, counter) };
}

function decode(report: Buffer | null, atMs: string | null): AgentReport | undefined {
  if (report === null) return undefined;
  return {
    report: fromBinary(ReportAgentStateRequestSchema, new Uint8Array(report)),
    atMs: Number(atMs),
  };
}

function encode({ report }: AgentReport): Buffer {
  return Buffer.from(toBinary(ReportAgentStateRequestSchema, report));
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
