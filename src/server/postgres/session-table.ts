// Sessions and sign-ins, in the tables `sessions` and `sign_ins`.
import {
  type SessionStore,
  type StoredSession,
  type StoredSignIn,
  sessionsPerNameMax,
  signInsMax,
} from "../sessions.ts";
import type { Database } from "./database.ts";

interface SessionRow {
  readonly name: string;
  readonly binding: string;
  readonly groups: readonly string[] | null;
  readonly created_at_ms: string;
  readonly expires_at_ms: string;
}

export class SessionTable implements SessionStore {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async add({ id, name, binding, groups, createdAtMs, expiresAtMs }: StoredSession): Promise<void> {
    await this.database.transact(async (session) => {
      await session.query(
        "INSERT INTO sessions (id, name, binding, groups, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5, $6)",
        [id, name, binding, groups ?? null, Math.trunc(createdAtMs), Math.trunc(expiresAtMs)],
      );
      await session.query(
        `DELETE FROM sessions WHERE expires_at_ms <= $1 OR (name = $2 AND ordinal NOT IN (
           SELECT ordinal FROM sessions WHERE name = $2 ORDER BY ordinal DESC LIMIT $3
         ))`,
        [Math.trunc(createdAtMs), name, sessionsPerNameMax],
      );
    });
  }

  async find(id: string): Promise<StoredSession | undefined> {
    const [row] = await this.database.read<SessionRow>(
      "SELECT name, binding, groups, created_at_ms, expires_at_ms FROM sessions WHERE id = $1",
      [id],
    );
    return (
      row && {
        id,
        name: row.name,
        binding: row.binding,
        ...(row.groups !== null && { groups: row.groups }),
        createdAtMs: Number(row.created_at_ms),
        expiresAtMs: Number(row.expires_at_ms),
      }
    );
  }

  async end({ id, name }: Partial<StoredSession>): Promise<number> {
    const ended = await this.database.transact((session) =>
      session.query("DELETE FROM sessions WHERE id = $1 OR name = $2 RETURNING id", [
        id ?? null,
        name ?? null,
      ]),
    );
    return ended.length;
  }

  async beginSignIn({ id, returnTo, expiresAtMs }: StoredSignIn, nowMs: number): Promise<void> {
    await this.database.transact(async (session) => {
      await session.query("INSERT INTO sign_ins (id, return_to, expires_at_ms) VALUES ($1, $2, $3)", [
        id,
        returnTo,
        Math.trunc(expiresAtMs),
      ]);
      await session.query(
        `DELETE FROM sign_ins WHERE expires_at_ms <= $1 OR ordinal <= (
           SELECT ordinal FROM sign_ins ORDER BY ordinal DESC OFFSET $2 LIMIT 1
         )`,
        [Math.trunc(nowMs), signInsMax],
      );
    });
  }

  async takeSignIn(id: string): Promise<StoredSignIn | undefined> {
    const [row] = await this.database.transact((session) =>
      session.query<{ readonly return_to: string; readonly expires_at_ms: string }>(
        "DELETE FROM sign_ins WHERE id = $1 RETURNING return_to, expires_at_ms",
        [id],
      ),
    );
    return row && { id, returnTo: row.return_to, expiresAtMs: Number(row.expires_at_ms) };
  }
}
