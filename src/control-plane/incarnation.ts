// Names the history that a control plane's versions belong to. A control plane that is restored from a backup, or fails
// over to a replica, continues with another history under the same numbers: it starts a new incarnation, and every
// response names it in a header. See docs/adr/0013-incarnations.md.
//
// - Incarnations are in a total order, by ordinal, then by id. So of two servers around a failover one is always the
//   newer one, and a client that never goes back cannot swing between them.
// - Requests name the incarnation that the client knows, and the highest version that it has seen of it.
// - Older control planes send no header.

export interface Incarnation {
  /** Grows from one incarnation to the next. */
  readonly ordinal: bigint;
  readonly id: string;
  /** The id of the incarnation that it continues; empty for the first one. */
  readonly parent: string;
}

/** Of requests and responses. */
export const incarnationHeader = "x-krane-incarnation";
/** Of requests: the highest version of that incarnation that the client has seen. */
export const versionSeenHeader = "x-krane-version-seen";

/** Of requests about one object: the version of it that the client knows. */
export const versionKnownHeader = "x-krane-version-known";

const format = /^(\d{1,18})\/([\w-]{1,64})\/([\w-]{0,64})$/;

export function formatIncarnation({ ordinal, id, parent }: Incarnation): string {
  return `${ordinal}/${id}/${parent}`;
}

/** Undefined if the header is missing or unreadable. */
export function parseIncarnation(text: string | null | undefined): Incarnation | undefined {
  const [, ordinal, id, parent] = format.exec(text ?? "") ?? [];
  if (ordinal === undefined || id === undefined || parent === undefined) return undefined;
  return { ordinal: BigInt(ordinal), id, parent };
}

/** 0 if they are the same, above 0 if the first is newer. */
export function compareIncarnations(one: Incarnation, other: Incarnation): number {
  if (one.ordinal !== other.ordinal) return one.ordinal > other.ordinal ? 1 : -1;
  if (one.id === other.id) return 0;
  return one.id > other.id ? 1 : -1;
}
