// Lists objects in pages. All pages of one list show the state at one resourceVersion, which is part of the continue
// token together with the last key.
import type { Scope } from "./core.ts";
import { isObject, type Json } from "./json.ts";
import { type ListQuery, parseRevision } from "./query.ts";
import type { ListMeta } from "./representation.ts";
import type { Selection } from "./selection.ts";
import { badRequest, expired, StatusError } from "./status-error.ts";
import { ExpiredError, keyText, type ObjectStore, type StoredObject } from "./store.ts";

export interface Page {
  readonly items: readonly StoredObject[];
  readonly meta: ListMeta;
}

const pageExpiredMessage =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

interface Token {
  readonly revision: number;
  readonly after: string;
}

export function listPage(scope: Scope, query: ListQuery, selects: Selection): Page {
  const { store } = scope.core;
  const token = query.continueToken === "" ? undefined : parseToken(query);
  const revision = token === undefined ? listRevision(store, query) : pageRevision(store, token);
  const all = objectsAt(scope, revision, token);
  const start = token === undefined ? 0 : all.findIndex((object) => keyText(object) > token.after);
  const remaining = start < 0 ? [] : all.slice(start);
  const items: StoredObject[] = [];
  let seen = 0;
  for (const object of remaining) {
    if (query.limit > 0 && items.length === query.limit) break;
    seen++;
    if (selects(object)) items.push(object);
  }
  const resourceVersion = String(revision);
  const rest = remaining.slice(seen);
  // A full page has a continue token if objects are left, whether they match or not.
  const last = remaining[seen - 1];
  if (rest.length === 0 || last === undefined) return { items, meta: { resourceVersion } };
  const isSelective = query.labelSelector !== "" || query.fieldSelector !== "";
  return {
    items,
    meta: {
      resourceVersion,
      continue: printToken({ revision, after: keyText(last) }),
      ...(isSelective ? {} : { remainingItemCount: rest.length }),
    },
  };
}

function listRevision(store: ObjectStore, query: ListQuery): number {
  const asked = parseRevision(query.resourceVersion);
  if (asked === undefined || asked === 0) return store.revision;
  if (asked > store.revision) throw tooLarge(asked, store.revision);
  return query.resourceVersionMatch === "Exact" ? asked : store.revision;
}

export function tooLarge(asked: number, current: number): StatusError {
  return new StatusError(
    504,
    "Timeout",
    `Timeout: Too large resource version: ${asked}, current: ${current}`,
    {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
  );
}

/** A token without a revision continues in the current state. */
function pageRevision(store: ObjectStore, token: Token): number {
  return token.revision < 0 ? store.revision : token.revision;
}

function objectsAt(
  { core, resource, namespace }: Scope,
  revision: number,
  token: Token | undefined,
): StoredObject[] {
  if (revision === core.store.revision) return core.store.list(resource.kind, namespace);
  try {
    return core.store.listAt(resource.kind, namespace, revision);
  } catch (error) {
    if (!(error instanceof ExpiredError)) throw error;
    if (token === undefined) throw expired("The resourceVersion for the provided list is too old.");
    throw expired(pageExpiredMessage, printToken({ ...token, revision: -1 }));
  }
}

function printToken({ revision, after }: Token): string {
  const token = { v: "meta.k8s.io/v1", rv: revision, start: `${after}\u0000` };
  return Buffer.from(JSON.stringify(token)).toString("base64url");
}

function parseToken(query: ListQuery): Token {
  if (query.resourceVersion !== "" && query.resourceVersion !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  const token = parseJson(Buffer.from(query.continueToken, "base64url").toString());
  if (isObject(token) && typeof token["rv"] === "number" && typeof token["start"] === "string") {
    return { revision: token["rv"], after: token["start"].replace(/\0$/, "") };
  }
  throw badRequest("invalid continue token: continue key is not valid");
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
