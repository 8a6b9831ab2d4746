// Finds list items that an edit moved to another key, which no apply can move back.
import type { ReplaceOperation } from "../kube/api.ts";
import type { KubeObject } from "../kube/types.ts";
import { isRecord } from "./drifted-fields.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * Finds list items whose key was edited, and returns the patch that restores them.
 *
 * Server-side apply identifies the items of most lists by a key: the port of a Service by its number. If somebody
 * edits that number, an apply sees a different item and adds krane's beside it; the server then rejects two ports
 * with the same name. So no apply can undo the edit. A patch can, because it addresses the index and not the key.
 * Fields outside of lists are left out: an apply repairs those.
 */
export function findMovedItems(manifest: KubeObject, live: KubeObject): ReplaceOperation[] {
  return inObject(manifest as Json, live as Json, "", false);
}

function inObject(wanted: Json, live: Json, path: string, isItem: boolean): ReplaceOperation[] {
  return Object.entries(wanted).flatMap(([name, value]) => {
    const found = live[name];
    const place = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (Array.isArray(value)) return Array.isArray(found) ? inList(value, found, place) : [];
    if (isRecord(value)) return isRecord(found) ? inObject(value, found, place, isItem) : [];
    // An apply adds what is missing.
    const isMoved = isItem && found !== undefined && found !== value;
    return isMoved ? [{ op: "replace" as const, path: place, value }] : [];
  });
}

function inList(wanted: readonly unknown[], live: readonly unknown[], path: string): ReplaceOperation[] {
  return wanted.flatMap((item, index) => {
    if (!isRecord(item)) return [];
    const at = placeOf(item, index, wanted.length, live);
    const found = live[at];
    return isRecord(found) ? inObject(item, found, `${path}/${at}`, true) : [];
  });
}

/** Finds the item by its name if it has one, else by its index, if the live list has as many items as krane's. */
function placeOf(item: Json, index: number, count: number, live: readonly unknown[]): number {
  const { name } = item;
  if (name !== undefined) return live.findIndex((other) => isRecord(other) && other["name"] === name);
  return live.length === count ? index : -1;
}
