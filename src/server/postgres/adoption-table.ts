// Pending adoptions, in the table `adoptions`.
import type { Stranger } from "../../gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../../kinds/kinds.ts";
import { type AllowedAdoption, acceptedOf, adoptedText, adoptionsFor, refOf } from "../allowed-adoptions.ts";
import type { AgentReport, Author, HistoryEntry, StrangerRef } from "../store.ts";
import { lockState } from "./agent-table.ts";
import type { Database, Session } from "./database.ts";
import { addHistory } from "./history-table.ts";

interface AdoptionRow extends StrangerRef {
  readonly at_ms: string;
}

export class AdoptionTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  adoptObjects(
    region: string,
    objects: readonly StrangerRef[],
    author: Author,
  ): Promise<readonly StrangerRef[]> {
    return this.database.transact(async (session) => {
      const { state } = await lockState(session, region);
      const accepted = acceptedOf(objects, state?.report);
      await session.query(
        `INSERT INTO adoptions (region, controller, kind, namespace, name, uid, at_ms, author)
         SELECT $1, t.*, $7, $8 FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) AS t
         ON CONFLICT (region, controller, kind, namespace, name, uid)
         DO UPDATE SET at_ms = excluded.at_ms, author = excluded.author`,
        [
          region,
          accepted.map(({ controller }) => controller),
          accepted.map(({ kind }) => kind),
          accepted.map(({ namespace }) => namespace),
          accepted.map(({ name }) => name),
          accepted.map(({ uid }) => uid),
          Math.trunc(author.atMs),
          author.by,
        ],
      );
      await addHistory(session, region, ...(await historyOf(session, region, accepted, author)));
      return accepted;
    });
  }

  adoptionsFor(region: string, report: AgentReport): Promise<readonly StrangerRef[]> {
    return this.database.transact(async (session) => {
      await lockState(session, region);
      const pending = await loadPending(session, region);
      const kept = adoptionsFor(pending, report);
      for (const each of pending) if (!kept.includes(each)) await remove(session, region, each);
      return kept;
    });
  }
}

/** Only objects of desired state have a history: not the pull secret of a namespace, nor the policy of an environment. */
async function historyOf(
  session: Session,
  region: string,
  strangers: readonly Stranger[],
  author: Author,
): Promise<readonly HistoryEntry[]> {
  const named = strangers.flatMap((stranger) => {
    const kind = kindOfController(stranger.controller)?.name;
    return kind === undefined ? [] : [{ kind, stranger }];
  });
  const rows = await session.query<{ kind: string; id: string; version: string }>(
    `SELECT kind, id, version FROM objects
     WHERE region = $1 AND (kind, id) IN (SELECT * FROM unnest($2::text[], $3::text[]))`,
    [region, named.map(({ kind }) => kind), named.map(({ stranger }) => stranger.id)],
  );
  const versions = new Map(rows.map(({ kind, id, version }) => [`${kind} ${id}`, BigInt(version)]));
  return named.flatMap(({ kind, stranger }) => {
    const { id } = stranger;
    const version = versions.get(`${kind} ${id}`);
    if (version === undefined) return [];
    return [{ ...author, kind, id, version, event: "adopted" as const, outcome: adoptedText(stranger) }];
  });
}

async function loadPending(session: Session, region: string): Promise<readonly AllowedAdoption[]> {
  const rows = await session.query<AdoptionRow>(
    `SELECT controller, kind, namespace, name, uid, at_ms FROM adoptions WHERE region = $1
     ORDER BY controller, kind, namespace, name`,
    [region],
  );
  return rows.map((row) => ({ ...refOf(row), atMs: Number(row.at_ms) }));
}

async function remove(session: Session, region: string, object: StrangerRef): Promise<void> {
  const { controller, kind, namespace, name, uid } = object;
  await session.query(
    `DELETE FROM adoptions WHERE region = $1 AND controller = $2 AND kind = $3 AND namespace = $4 AND name = $5
     AND uid = $6`,
    [region, controller, kind, namespace, name, uid],
  );
}
