// Lists a whole collection, page by page. It returns all objects as of one resourceVersion, or fails: a partial list
// would look like the deletion of the rest.
import type { KubeApi, Selection } from "./api.ts";
import { KubeApiError } from "./errors.ts";
import type { KubeObject, ResourceKind } from "./types.ts";

// A page is in memory several times while it is read: its bytes, its text and its objects. 500 pods are 3 MB of text, and
// twenty thousand of them in such pages left the process 40 MB larger than in these.
const pageSize = 100;
// Objects of a megabyte each, which anybody may create, make a page too large to be read.
const smallerBy = 4;

// More pages than this mean that the server repeats itself; without a limit the list would never end.
const pagesMax = 10_000;

export interface WholeList<P> {
  readonly items: readonly P[];
  readonly resourceVersion: string;
}

/** `keep` returns what to keep of each object, so that a page can be freed before the next one arrives. */
export async function listAll<T extends KubeObject, P>(
  api: KubeApi,
  kind: ResourceKind<T>,
  selection: Selection,
  keep: (object: T) => P,
  signal: AbortSignal,
): Promise<WholeList<P>> {
  try {
    return await readPages(api, kind, selection, keep, signal);
  } catch (error) {
    // The continue token expired. The pages so far belong to a state that can no longer be completed, so the list is
    // started over, once.
    if (!(error instanceof KubeApiError && error.isExpired)) throw error;
    return await readPages(api, kind, selection, keep, signal);
  }
}

async function readPages<T extends KubeObject, P>(
  api: KubeApi,
  kind: ResourceKind<T>,
  selection: Selection,
  keep: (object: T) => P,
  signal: AbortSignal,
): Promise<WholeList<P>> {
  const items: P[] = [];
  let token: string | undefined;
  let limit = pageSize;
  for (let pages = 0; pages < pagesMax; pages++) {
    const options = { ...selection, limit, ...(token === undefined ? {} : { continue: token }) };
    const page = await api.list(kind, options, signal).catch((error: unknown) => {
      if (error instanceof KubeApiError && error.code === "too-large" && limit > 1) return undefined;
      throw error;
    });
    if (page === undefined) {
      limit = Math.ceil(limit / smallerBy);
      continue;
    }
    for (const object of page.items) items.push(keep(object));
    if (page.continue === undefined) return { items, resourceVersion: page.resourceVersion };
    token = page.continue;
  }
  throw new KubeApiError("too-large", `list ${kind.plural}: more than ${pagesMax * pageSize} objects`);
}
