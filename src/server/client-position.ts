// Compares the position of an agent with that of the database: an agent names the incarnation that it knows and the
// highest version that it has seen of it. See docs/adr/0013-incarnations.md.
//
// - A replica that has not reached that version lags. It must not answer: its `not_found` may be about an object that
//   it does not have yet.
// - A primary never lags. If it has not reached the version, it was rolled back, and has to start a new incarnation. The
//   same is true of a row with a lower version than the agent knows: the counter may have passed the lost versions again.
// - In another incarnation the agent's versions mean nothing.
import {
  compareIncarnations,
  type Incarnation,
  incarnationHeader,
  parseIncarnation,
  versionKnownHeader,
  versionSeenHeader,
} from "../control-plane/incarnation.ts";

/** The incarnation of a store's history. */
export interface StoreIncarnation extends Incarnation {
  /** The database is a replica, which may lag behind its primary and cannot be written. */
  readonly isReplica: boolean;
}

export interface ClientPosition {
  readonly incarnation: Incarnation;
  readonly versionSeen: bigint;
  /** The known version of the object that the request is about; 0 if none is. */
  readonly versionKnown: bigint;
}

/** Where the database is. */
export interface StorePosition {
  readonly incarnation: StoreIncarnation;
  /** The region's counter. */
  readonly counter: bigint;
  /** The version of the row that the request is about, if there is one. */
  readonly rowVersion?: bigint | undefined;
}

export type Standing =
  /** The versions mean the same on both sides. */
  | "same"
  /** The agent's versions mean nothing here. */
  | "other"
  | "lagging"
  | "rolled-back"
  /** The agent has seen a newer incarnation that another database started. */
  | "superseded";

/** A clock that is a day ahead is wrong, and an agent must not be able to use up the ordinals. */
const aheadMaxMs = 86_400_000n;

/** Undefined for agents that name no incarnation. */
export function readClientPosition(headers: Headers): ClientPosition | undefined {
  const incarnation = parseIncarnation(headers.get(incarnationHeader));
  const versionSeen = readVersion(headers.get(versionSeenHeader));
  const versionKnown = readVersion(headers.get(versionKnownHeader));
  return incarnation && { incarnation, versionSeen, versionKnown };
}

function readVersion(text: string | null): bigint {
  return text !== null && /^\d{1,18}$/.test(text) ? BigInt(text) : 0n;
}

export function standingOf(
  { incarnation: store, counter, rowVersion }: StorePosition,
  client: ClientPosition,
  nowMs: number,
): Standing {
  const order = compareIncarnations(client.incarnation, store);
  if (order === 0) {
    // It has only just learned the name. What it had applied before a restart is unknown, and may be newer.
    if (store.isReplica && client.versionSeen === 0n) return "lagging";
    const isBehind =
      client.versionSeen > counter || client.versionKnown > (rowVersion ?? client.versionKnown);
    if (!isBehind) return "same";
    return store.isReplica ? "lagging" : "rolled-back";
  }
  if (order < 0) return "other";
  if (store.isReplica) return "lagging";
  const isPlausible = client.incarnation.ordinal <= BigInt(Math.trunc(nowMs)) + aheadMaxMs;
  return originOf(client.incarnation) === originOf(store) && isPlausible ? "rolled-back" : "superseded";
}

/** The database that started an incarnation; its id begins with it. */
export function originOf({ id }: Incarnation): string {
  return id.split("-", 1)[0] ?? "";
}
