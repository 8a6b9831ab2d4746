// A node with a database, and the file from which the processes on it learn of both.

import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Cluster } from "../cluster.ts";
import { nodeAddress } from "./box.ts";
import { startPostgres } from "./postgres.ts";

/** Resolves with the path of the file; see clusterVariable. */
export async function equipNode(cluster: Cluster): Promise<string> {
  const { kubectl: _, stop: __, ...facts } = cluster;
  const factsPath = join(cluster.dir, "facts.json");
  const databaseUrl = await startPostgres(join(dirname(cluster.dir), "postgres"), nodeAddress);
  await writeFile(factsPath, JSON.stringify({ ...facts, databaseUrl }), { mode: 0o600 });
  return factsPath;
}
