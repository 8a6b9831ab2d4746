// Sessions, in the table `sessions`.
import { type SessionStore, type StoredSession, sessionsPerNameMax } from "../sessions.ts";
import type { Database } from "./database.ts";

interface SessionRow {
  readonly name: string;
  readonly binding: string;
  readonly created_at_ms: string;
  readonly expires_at_ms: string;
}

export class SessionTable implements SessionStore {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async add({ id, name, binding, createdAtMs, expiresAtMs }: StoredSession): Promise<void> {
    await this.database.transact(async (session) => {
      await session.query(
        "INSERT INTO sessions (id, name, binding, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5)",
        [id, name, binding, Math.trunc(createdAtMs), Math.trunc(expiresAtMs)],
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
      "SELECT name, binding, created_at_ms, expires_at_ms FROM sessions WHERE id = $1",
      [id],
    );
    return (
      row && {
        id,
        name: row.name,
        binding: row.binding,
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
}
