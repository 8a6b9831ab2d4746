// Converts rows of the table `environments`.
import { fromBinary } from "@bufbuild/protobuf";
import { SecretsConfigSchema } from "../../gen/ctrl/v1/secrets_pb.ts";
import type { StoredEnvironment } from "../store.ts";
import type { Session } from "./database.ts";

export interface EnvironmentRow {
  readonly id: string;
  readonly workspace_id: string;
  readonly project_id: string;
  readonly secrets: Buffer;
  readonly version: string;
}

export const environmentColumns = "e.id, e.workspace_id, e.project_id, e.secrets, e.version";

/** The caller must hold the lock on the region's row, which every change of an environment waits for. */
export async function readEnvironment(
  session: Pick<Session, "query">,
  region: string,
  id: string,
): Promise<StoredEnvironment | undefined> {
  const [row] = await session.query<EnvironmentRow>(
    `SELECT ${environmentColumns} FROM environments e WHERE e.region = $1 AND e.id = $2`,
    [region, id],
  );
  return row && decodeEnvironment(row);
}

export function decodeEnvironment(row: EnvironmentRow): StoredEnvironment {
  const config = fromBinary(SecretsConfigSchema, new Uint8Array(row.secrets));
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    projectId: row.project_id,
    secrets: new Map(Object.entries(config.secrets)),
    version: BigInt(row.version),
  };
}
