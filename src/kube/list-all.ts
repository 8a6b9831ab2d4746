// A whole collection, page by page. What comes back is all of it as of one resourceVersion, or an
// error: a list that was cut half way would look like the deletion of everything after the cut.
import type { KubeApi, Selection } from "./api.ts";
import { KubeApiError } from "./errors.ts";
import type { KubeObject, ResourceKind } from "./types.ts";

const pageSize = 500;

// A server that compacts so fast that lists never finish would hold the caller here for ever; more
// pages than these are a server that repeats itself.
const pagesMax = 2_000;

export interface WholeList<P> {
  readonly items: readonly P[];
  readonly resourceVersion: string;
}

/** `keep` says what to remember of each object, so that a page can be freed before the next one comes. */
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
    // The continue token outlived the server's history. The pages so far belong to a state that can
    // no longer be completed, so they are dropped, and the list begins anew, once.
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
  for (let pages = 0; pages < pagesMax; pages++) {
    const page = await api.list(
      kind,
      { ...selection, limit: pageSize, ...(token === undefined ? {} : { continue: token }) },
      signal,
    );
    for (const object of page.items) items.push(keep(object));
    if (page.continue === undefined) return { items, resourceVersion: page.resourceVersion };
    token = page.continue;
  }
  throw new KubeApiError("too-large", `list ${kind.plural}: more than ${pagesMax * pageSize} objects`);
}
