// Hostnames, in the tables `hostname_grants` and `hostnames`. The latter has those of each route as it was last written.
//
// Whoever writes a route with hostnames shares a lock on the grants until its commit, and whoever changes the grants has it
// alone. So neither decides on what the other is about to change.
import { fromBinary } from "@bufbuild/protobuf";
import { ApplyRouteSchema, ReportRouteStatusRequestSchema } from "../../gen/ctrl/v1/route_pb.ts";
import { grantsCovering } from "../../model/hostnames.ts";
import { checkHostnames, checkUses, grantedToAnother } from "../hostname-rules.ts";
import type { HostnameGrant, HostnameStore, HostnameUse } from "../hostnames.ts";
import type { Row } from "../store.ts";
import type { Database, Session } from "./database.ts";

interface GrantRow {
  readonly name: string;
  readonly workspace_id: string;
  readonly author: string;
  readonly at_ms: string;
}

const columns = "name, workspace_id, author, at_ms";

export class HostnameTables implements HostnameStore {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  grant(grant: HostnameGrant): Promise<HostnameGrant> {
    const { name, workspaceId, by, atMs } = grant;
    return this.database.transact(async (session) => {
      const grants = await lockGrants(session);
      const before = grants.find((each) => each.name === name);
      if (before !== undefined && before.workspace_id !== workspaceId) throw grantedToAnother(decode(before));
      if (before !== undefined) return decode(before);
      checkUses(await readUses(session), ownersOf(grants).set(name, workspaceId), name, "grant");
      await session.query(`INSERT INTO hostname_grants (${columns}) VALUES ($1, $2, $3, $4)`, [
        ...[name, workspaceId, by],
        Math.trunc(atMs),
      ]);
      return grant;
    });
  }

  revoke(name: string): Promise<boolean> {
    return this.database.transact(async (session) => {
      const left = ownersOf(await lockGrants(session));
      if (!left.delete(name)) return false;
      checkUses(await readUses(session), left, name, "revoke");
      await session.query("DELETE FROM hostname_grants WHERE name = $1", [name]);
      return true;
    });
  }

  async list(afterName: string, limit: number, workspaceId?: string): Promise<readonly HostnameGrant[]> {
    const rows = await this.database.read<GrantRow>(
      `SELECT ${columns} FROM hostname_grants
       WHERE name COLLATE "C" > $1 AND ($3::text IS NULL OR workspace_id = $3)
       ORDER BY name COLLATE "C" LIMIT $2`,
      [afterName, limit, workspaceId ?? null],
    );
    return rows.map(decode);
  }
}

/** Notes the hostnames of a route that was written; throws if it cannot have them. */
export async function claimHostnames(
  session: Session,
  region: string,
  { id, spec, desired }: Pick<Row<"route">, "id" | "spec" | "desired">,
): Promise<void> {
  await session.query("DELETE FROM hostnames WHERE region = $1 AND route_id = $2", [region, id]);
  const { hostnames, workspaceId } = spec;
  if (desired === "stopped" || hostnames.length === 0) return;
  await session.query("LOCK TABLE hostname_grants IN ROW SHARE MODE");
  const grants = await session.query<GrantRow>(
    `SELECT ${columns} FROM hostname_grants WHERE name = ANY ($1::text[])`,
    [hostnames.flatMap(grantsCovering)],
  );
  const holders = await session.query<{ hostname: string; route_id: string }>(
    `SELECT h.hostname, h.route_id FROM hostnames h
     JOIN objects o ON o.region = h.region AND o.kind = h.kind AND o.id = h.route_id
     WHERE h.region = $1 AND h.hostname = ANY ($2::text[]) AND o.desired <> 'stopped'`,
    [region, hostnames],
  );
  checkHostnames(spec, {
    grants: ownersOf(grants),
    holders: new Map(holders.map(({ hostname, route_id }) => [hostname, route_id])),
  });
  // A server of an older version may have stopped the route that has one, without taking it away.
  await session.query(
    `INSERT INTO hostnames (region, route_id, workspace_id, hostname) SELECT $1, $2, $3, unnest($4::text[])
     ON CONFLICT (region, hostname) DO UPDATE SET
       route_id = excluded.route_id, workspace_id = excluded.workspace_id`,
    [region, id, workspaceId, hostnames],
  );
}

async function lockGrants(session: Session): Promise<readonly GrantRow[]> {
  await session.query("LOCK TABLE hostname_grants IN EXCLUSIVE MODE");
  return session.query<GrantRow>(`SELECT ${columns} FROM hostname_grants`);
}

async function readUses(session: Session): Promise<readonly HostnameUse[]> {
  const wanted = await session.query<HostnameUse>(
    `SELECT h.hostname, h.region, h.route_id AS "routeId", h.workspace_id AS "workspaceId" FROM hostnames h
     JOIN objects o ON o.region = h.region AND o.kind = h.kind AND o.id = h.route_id
     WHERE o.desired <> 'stopped'`,
  );
  const reported = await session.query<{ region: string; id: string; body: Buffer; spec: Buffer }>(
    `SELECT r.region, r.id, r.body, o.spec FROM reports r
     JOIN objects o ON o.region = r.region AND o.kind = r.kind AND o.id = r.id
     WHERE r.kind = 'route' AND r.present`,
  );
  const live = reported.flatMap(({ region, id, body, spec }) => {
    const { hostnames } = fromBinary(ReportRouteStatusRequestSchema, new Uint8Array(body));
    if (hostnames.length === 0) return [];
    const { workspaceId } = fromBinary(ApplyRouteSchema, new Uint8Array(spec));
    return hostnames.map((hostname) => ({ hostname, region, routeId: id, workspaceId }));
  });
  return [...wanted, ...live];
}

function ownersOf(grants: readonly GrantRow[]): Map<string, string> {
  return new Map(grants.map(({ name, workspace_id }) => [name, workspace_id]));
}

function decode({ name, workspace_id, author, at_ms }: GrantRow): HostnameGrant {
  return { name, workspaceId: workspace_id, by: author, atMs: Number(at_ms) };
}
