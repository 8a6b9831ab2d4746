// JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces.
import { fieldOf, isObject, type Json, type JsonObject, setField } from "../json.ts";

export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged: JsonObject = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else setField(merged, key, applyMergePatch(fieldOf(merged, key), value));
  }
  return merged;
}
