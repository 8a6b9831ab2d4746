// Merges an applied configuration into the live object: maps key by key, keyed lists item by item. All other values are
// replaced by the configuration's.
import { fieldOf, isObject, type Json, type JsonObject, setField } from "../json.ts";
import type { Schema } from "../schema.ts";
import type { PathElement } from "./path-element.ts";
import { childSchema, isAtomicList, isAtomicMap, itemElement, itemSchema, shapeOf } from "./typed-value.ts";

type Side = Json | undefined;

export function mergeValues(schema: Schema, live: Side, config: Side): Side {
  const shape = shapeOf(schema, config ?? live);
  if (shape === "map" && !isAtomicMap(schema) && !(isEmptyMap(live) && isEmptyMap(config))) {
    return mergeMaps(schema, isObject(live) ? live : {}, isObject(config) ? config : {});
  }
  if (shape === "list" && !isAtomicList(schema) && !(isEmptyList(live) && isEmptyList(config))) {
    return mergeLists(schema, Array.isArray(live) ? live : [], Array.isArray(config) ? config : []);
  }
  return config !== undefined ? config : live;
}

function mergeMaps(schema: Schema, live: JsonObject, config: JsonObject): Side {
  const merged: JsonObject = {};
  for (const key of new Set([...Object.keys(live), ...Object.keys(config)])) {
    const value = mergeValues(childSchema(schema, key), fieldOf(live, key), fieldOf(config, key));
    if (value !== undefined) setField(merged, key, value);
  }
  return Object.keys(merged).length > 0 ? merged : undefined;
}

// The configuration decides the order of its own items. Other live items stay between their neighbours.
function mergeLists(schema: Schema, live: readonly Json[], config: readonly Json[]): Side {
  const liveElements = live.map((item) => itemElement(schema, item));
  const configElements = config.map((item) => itemElement(schema, item));
  const liveByElement = indexItems(liveElements, live);
  const configByElement = indexItems(configElements, config);
  const merged: Json[] = [];
  const taken = new Set<PathElement>();
  const take = (element: PathElement, left: Side): void => {
    const value = mergeValues(itemSchema(schema), left, configByElement.get(element));
    if (value !== undefined) merged.push(value);
  };
  const shared = configElements.filter((element) => liveByElement.has(element));
  let [l, c] = [0, 0];
  while (l < liveElements.length || c < configElements.length) {
    const left = liveElements[l];
    const right = configElements[c];
    if (left !== undefined && right !== undefined && left !== right) {
      const isLater = configByElement.has(left) && shared[0] !== undefined && shared[0] !== left;
      if (isLater) {
        l++;
        continue;
      }
    }
    if (left !== undefined && !configByElement.has(left)) {
      take(left, live[l]);
      l++;
      continue;
    }
    if (left !== undefined && (taken.has(left) || left === right)) l++;
    if (right !== undefined) {
      take(right, liveByElement.get(right));
      taken.add(right);
      if (shared[0] === right) shared.shift();
      c++;
    }
  }
  return merged.length > 0 ? merged : undefined;
}

/** Live items with duplicate keys are not merged; the configuration replaces them. */
function indexItems(elements: readonly PathElement[], items: readonly Json[]): Map<PathElement, Side> {
  const index = new Map<PathElement, Side>();
  for (const [position, element] of elements.entries()) {
    index.set(element, index.has(element) ? undefined : items[position]);
  }
  return index;
}

function isEmptyMap(value: Side): boolean {
  return !isObject(value) || Object.keys(value).length === 0;
}

function isEmptyList(value: Side): boolean {
  return !Array.isArray(value) || value.length === 0;
}
