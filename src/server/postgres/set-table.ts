// Sets of objects, in the table `set_members`.

import { unknownRegion } from "../row-rules.ts";
import type { SetMember, SetStore } from "../sets.ts";
import type { Database } from "./database.ts";
import { lockRegion } from "./object-table.ts";

export class SetTable implements SetStore {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async join(region: string, set: string, members: readonly SetMember[]): Promise<void> {
    await this.database.transact(async (session) => {
      // A deletion at the same time would otherwise leave a member that does not exist.
      await lockRegion(session, region);
      await session.query(
        `INSERT INTO set_members (region, kind, id, name)
         SELECT DISTINCT $1, kind, id, $2 FROM unnest($3::text[], $4::text[]) AS t (kind, id)
         WHERE CASE kind
           WHEN 'app' THEN EXISTS (SELECT 1 FROM apps a WHERE a.region = $1 AND a.id = t.id)
           WHEN 'environment' THEN EXISTS (SELECT 1 FROM environments e WHERE e.region = $1 AND e.id = t.id)
           ELSE EXISTS (
             SELECT 1 FROM objects o
             WHERE o.region = $1 AND o.kind = t.kind AND o.id = t.id AND o.desired = 'running'
           ) END
         ON CONFLICT (region, kind, id) DO UPDATE SET name = excluded.name`,
        [region, set, members.map(({ kind }) => kind), members.map(({ id }) => id)],
      );
    });
  }

  async members(region: string, set: string): Promise<readonly SetMember[]> {
    const rows = await this.database.read<SetMember | { readonly kind: null }>(
      `SELECT m.kind, m.id FROM regions r LEFT JOIN set_members m ON m.region = r.name AND m.name = $2
       WHERE r.name = $1 ORDER BY m.kind COLLATE "C", m.id COLLATE "C"`,
      [region, set],
    );
    if (rows.length === 0) throw unknownRegion(region);
    return rows.flatMap((row) => (row.kind === null ? [] : [{ kind: row.kind, id: row.id }]));
  }
}
