// Stateless paging of a sorted list: a page token names the item after which the page begins, so items that are added or
// removed between two pages neither repeat nor hide others.
import { Code, ConnectError } from "@connectrpc/connect";

/** The sort key of a list: controller, then key. */
export interface ListPosition {
  readonly controller: string;
  readonly key: string;
}

export interface PageRequest {
  /** 0 means the server's default. */
  readonly pageSize: number;
  /** Empty for the first page. */
  readonly pageToken: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
}

// A status with a long reason is about 1 KB, and gRPC clients accept 4 MB.
const pageSizeMax = 500;

export interface PageStart {
  /** Undefined for the first page. */
  readonly after: ListPosition | undefined;
  /** How many items it has at most. */
  readonly size: number;
}

export function parsePage({ pageSize, pageToken }: PageRequest): PageStart {
  const size = pageSize === 0 ? pageSizeMax : Math.min(pageSize, pageSizeMax);
  return { after: pageToken === "" ? undefined : readToken(pageToken), size };
}

/** Returns one page of the items, which must be sorted. */
export function pageOf<T extends ListPosition>(items: readonly T[], request: PageRequest): Page<T> {
  const { after, size } = parsePage(request);
  const rest = after === undefined ? items : items.filter((item) => comparePositions(item, after) > 0);
  const page = rest.slice(0, size);
  const last = page.at(-1);
  return { items: page, nextPageToken: last === undefined || rest.length <= size ? "" : tokenOf(last) };
}

export function comparePositions(a: ListPosition, b: ListPosition): number {
  if (a.controller !== b.controller) return a.controller < b.controller ? -1 : 1;
  if (a.key === b.key) return 0;
  return a.key < b.key ? -1 : 1;
}

/** The token of the page that begins after this item. */
export function tokenOf({ controller, key }: ListPosition): string {
  return Buffer.from(JSON.stringify([controller, key])).toString("base64url");
}

function readToken(token: string): ListPosition {
  const [controller, key] = parseQuietly(Buffer.from(token, "base64url").toString("utf8"));
  if (typeof controller !== "string" || typeof key !== "string") {
    throw new ConnectError("page_token: is invalid", Code.InvalidArgument);
  }
  return { controller, key };
}

function parseQuietly(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
