// Names the incarnation in every response, and turns away agents that this server must not answer.
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { formatIncarnation, type Incarnation, incarnationHeader } from "../control-plane/incarnation.ts";
import type { KindName } from "../kinds/kinds.ts";
import { readClientPosition, type StoreIncarnation, standingOf } from "./client-position.ts";
import type { Store } from "./store.ts";

export interface ServedIncarnationDeps {
  readonly store: Pick<Store, "startIncarnation">;
  readonly clock: Clock;
}

/** What the response was read from, in one snapshot. */
export interface ServedState {
  readonly region: string;
  /** The row that the request is about. */
  readonly row?: { readonly kind: KindName; readonly id: string; readonly version: bigint } | undefined;
  /** The region's counter. */
  readonly counter: bigint;
  /** Undefined for a store that names none. */
  readonly incarnation?: StoreIncarnation | undefined;
}

const retryAfterSeconds = 1;

// The agent may have applied newer versions before it was restarted, and would go back to what the replica has.
const unprovenReason = "this server has a replica, which may lag; ask a server with the primary first";

export function nameIncarnation(context: HandlerContext, incarnation: Incarnation | undefined): void {
  if (incarnation !== undefined)
    context.responseHeader.set(incarnationHeader, formatIncarnation(incarnation));
}

/**
 * Names the incarnation. Resolves with whether the versions of the agent mean something in it; throws `unavailable` if
 * the agent must not be answered.
 */
export async function receiveClient(
  { store, clock }: ServedIncarnationDeps,
  context: HandlerContext,
  { region, row, counter, incarnation }: ServedState,
): Promise<boolean> {
  if (incarnation === undefined) return true;
  nameIncarnation(context, incarnation);
  const client = readClientPosition(context.requestHeader);
  if (client === undefined) {
    if (incarnation.isReplica) throw turnedAway(unprovenReason);
    return true;
  }
  const rowVersion = row?.version;
  switch (standingOf({ incarnation, counter, rowVersion }, client, clock.wallMs())) {
    case "same":
      return true;
    case "other":
      return false;
    case "lagging":
      if (client.versionSeen === 0n) throw turnedAway(unprovenReason);
      throw turnedAway(
        `this replica is at version ${counter} of ${region}, behind version ${client.versionSeen}`,
      );
    case "superseded":
      throw turnedAway(`incarnation ${client.incarnation.ordinal} replaced this one, ${incarnation.ordinal}`);
    case "rolled-back": {
      const started = await store.startIncarnation({
        replaces: incarnation.id,
        above: client.incarnation.ordinal,
        reason: "rolled back",
        seen: {
          region,
          incarnationId: client.incarnation.id,
          version: client.versionSeen,
          ...(row && { row: { kind: row.kind, id: row.id, version: client.versionKnown } }),
        },
      });
      nameIncarnation(context, started);
      throw turnedAway("the database was rolled back; retry in its new incarnation");
    }
  }
}

export function turnedAway(reason: string): ConnectError {
  return new ConnectError(reason, Code.Unavailable, { "retry-after": `${retryAfterSeconds}` });
}
