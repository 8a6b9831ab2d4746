// Items of lists that somebody gave another key, and the patch that gives them their own back.
//
// The items of most lists are known by a key: a port of a Service by its number. Who edits that number
// makes another item of it in the eyes of server-side apply. krane's own would be put beside it, and the
// server refuses two ports of one name, so no apply can undo such an edit. A patch can, because it names
// the place and not the key.
import type { ReplaceOperation } from "../kube/api.ts";
import type { KubeObject } from "../kube/types.ts";

type Json = Readonly<Record<string, unknown>>;

/** What to replace in the live object's lists; nothing outside of lists, which an apply puts right by itself. */
export function findMovedItems(manifest: KubeObject, live: KubeObject): ReplaceOperation[] {
  return inObject(manifest as Json, live as Json, "", false);
}

function inObject(wanted: Json, live: Json, path: string, isItem: boolean): ReplaceOperation[] {
  return Object.entries(wanted).flatMap(([name, value]) => {
    const found = live[name];
    const place = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (Array.isArray(value)) return Array.isArray(found) ? inList(value, found, place) : [];
    if (isRecord(value)) return isRecord(found) ? inObject(value, found, place, isItem) : [];
    // What is not there at all, an apply adds.
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

/** By its name where it has one; by its place only in a list as long as krane's own. */
function placeOf(item: Json, index: number, count: number, live: readonly unknown[]): number {
  const { name } = item;
  if (name !== undefined) return live.findIndex((other) => isRecord(other) && other["name"] === name);
  return live.length === count ? index : -1;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
