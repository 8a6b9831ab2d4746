// Starts a new incarnation of a control plane's history on request; see docs/adr/0013-incarnations.md. Running servers on
// the same database notice it within seconds.
import type { Incarnation } from "../control-plane/incarnation.ts";
import type { DatabaseChoice } from "./config/server-config.ts";
import { openServerDatabase, type ServerDatabaseDeps } from "./server-database.ts";
import { ServerError } from "./server-error.ts";

export interface ReplacedIncarnation {
  readonly replaced: Incarnation;
  readonly started: Incarnation;
}

export async function startNewIncarnation(
  choice: DatabaseChoice,
  deps: ServerDatabaseDeps,
  signal: AbortSignal,
): Promise<ReplacedIncarnation> {
  const { store, close } = await openServerDatabase(choice, deps, signal);
  try {
    const replaced = await store.incarnation();
    if (replaced === undefined || replaced.isReplica)
      throw new ServerError("database_unusable", "the database is a replica; name its primary");
    const { id, ordinal } = replaced;
    const started = await store.startIncarnation({ replaces: id, above: ordinal, reason: "requested" });
    // Another server may have been faster, which is as good.
    return { replaced, started: started ?? replaced };
  } finally {
    await close();
  }
}
