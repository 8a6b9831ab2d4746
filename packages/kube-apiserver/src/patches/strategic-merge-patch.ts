// Strategic merge patch: like a merge patch, but keyed lists are merged item by item, and there are directives ($patch,
// $deleteFromPrimitiveList, $retainKeys, $setElementOrder). kubectl label, annotate, scale, rollout restart and
// client-side apply send these.
import { equalJson, fieldOf, isObject, type Json, type JsonObject, setField } from "../json.ts";
import { fieldSchema, type Property, type Schema } from "../schema.ts";

const deleteFromList = "$deleteFromPrimitiveList/";
const elementOrder = "$setElementOrder/";

export function applyStrategicPatch(schema: Schema, target: Json | undefined, patch: Json): Json | undefined {
  if (!isObject(patch)) return patch;
  if (patch["$patch"] === "delete") return undefined;
  const { $patch: directive, $retainKeys: retained, ...fields } = patch;
  if (directive === "replace") return withoutDirectives(fields);
  const merged: JsonObject = isObject(target) ? { ...target } : {};
  if (Array.isArray(retained)) {
    for (const key of Object.keys(merged)) if (!retained.includes(key)) delete merged[key];
  }
  for (const [key, value] of Object.entries(fields)) mergeField(schema, merged, key, value);
  const before: JsonObject = isObject(target) ? target : {};
  for (const [key, value] of Object.entries(fields)) {
    const isOrder = key.startsWith(elementOrder);
    const field = isOrder ? key.slice(elementOrder.length) : key;
    const isOrdered = isOrder || !Object.hasOwn(fields, elementOrder + key);
    if (isOrdered) orderList(schema.properties?.get(field), before, merged, field, value);
  }
  return merged;
}

function mergeField(schema: Schema, merged: JsonObject, key: string, value: Json): void {
  if (key.startsWith(elementOrder)) return;
  if (key.startsWith(deleteFromList)) {
    const field = key.slice(deleteFromList.length);
    const list = fieldOf(merged, field);
    if (Array.isArray(list) && Array.isArray(value)) {
      setField(
        merged,
        field,
        list.filter((item) => !value.some((gone) => equalJson(gone, item))),
      );
    }
    return;
  }
  const present = fieldOf(merged, key);
  const next = value === null ? undefined : mergeValue(schema, key, present, value);
  if (next === undefined) delete merged[key];
  else setField(merged, key, next);
}

function mergeValue(schema: Schema, key: string, present: Json | undefined, value: Json): Json | undefined {
  const property = schema.properties?.get(key);
  const inner = fieldSchema(schema, key) ?? {};
  if (isObject(value)) {
    if (property?.patchStrategy?.includes("replace")) return withoutDirectives(value);
    return applyStrategicPatch(inner, present, value);
  }
  if (!Array.isArray(value) || !property?.patchStrategy?.includes("merge")) return value;
  return mergeList(property, Array.isArray(present) ? present : [], value);
}

function mergeList(property: Property, present: readonly Json[], patch: readonly Json[]): Json[] {
  const mergeKey = property.patchMergeKey;
  const items = property.schema.items ?? {};
  if (mergeKey === undefined) {
    return [...present, ...patch.filter((item) => !present.some((known) => equalJson(known, item)))];
  }
  if (patch.some((item) => isObject(item) && item["$patch"] === "replace")) {
    return patch.filter((item) => !(isObject(item) && item["$patch"] === "replace"));
  }
  const merged = [...present];
  for (const item of patch) {
    if (!isObject(item)) continue;
    const index = merged.findIndex((known) => isObject(known) && equalJson(known[mergeKey], item[mergeKey]));
    const next = applyStrategicPatch(items, index < 0 ? undefined : merged[index], item);
    if (next === undefined) {
      if (index >= 0) merged.splice(index, 1);
    } else if (index >= 0) merged[index] = next;
    else merged.push(next);
  }
  return merged;
}

// Items in $setElementOrder, or else in the patch, are sorted as listed there. Other items keep their place before the
// first listed item that they preceded.
function orderList(
  property: Property | undefined,
  before: JsonObject,
  merged: JsonObject,
  field: string,
  order: Json,
): void {
  const list = fieldOf(merged, field);
  if (!property?.patchStrategy?.includes("merge") || !Array.isArray(list) || !Array.isArray(order)) return;
  const { patchMergeKey } = property;
  const identity = (item: Json) =>
    patchMergeKey !== undefined && isObject(item) ? item[patchMergeKey] : item;
  const placeIn = (items: Json | undefined, item: Json) =>
    Array.isArray(items) ? items.findIndex((other) => equalJson(identity(other), identity(item))) : -1;
  const named = list.filter((item) => placeIn(order, item) >= 0);
  named.sort((left, right) => placeIn(order, left) - placeIn(order, right));
  const others = list.filter((item) => placeIn(order, item) < 0);
  const was = fieldOf(before, field);
  const ordered: Json[] = [];
  for (const item of named) {
    const place = placeIn(was, item);
    while (others[0] !== undefined && place >= 0 && placeIn(was, others[0]) < place) {
      ordered.push(...others.splice(0, 1));
    }
    ordered.push(item);
  }
  setField(merged, field, [...ordered, ...others]);
}

function withoutDirectives(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([key, value]) => !key.startsWith("$") && value !== null),
  );
}
