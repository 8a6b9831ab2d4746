// Finds the fields that a write changed, by comparing the object before and after it. Lists whose items have a key are
// compared item by item, as server-side apply does.
import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../kube/types.ts";
import { type FieldStep, isRecord, type Json } from "./field-owners.ts";

export interface FieldChange {
  readonly path: readonly FieldStep[];
  /** undefined: the field was absent. */
  readonly before: unknown;
  /** undefined: the field is gone. */
  readonly after: unknown;
}

// The rest of the metadata is the server's, and so is the status.
const comparedMetadata = ["labels", "annotations", "ownerReferences"];

/**
 * The fields that krane's write changed. A field that the manifest does not have and that got a value meanwhile was
 * written by another program, and is left out.
 */
export function findChangedFields(
  before: KubeObject,
  after: KubeObject,
  manifest: KubeObject,
): readonly FieldChange[] {
  const changes: FieldChange[] = [];
  const [old, now, wanted] = [comparedPart(before), comparedPart(after), comparedPart(manifest)];
  compareMembers(old, now, wanted, [], changes);
  // People care about the spec first.
  return changes.sort((a, b) => Number(isMetadata(a)) - Number(isMetadata(b)));
}

/** Whether two states of an object differ only in what the server records about them. */
export function isSameContent(one: KubeObject, other: KubeObject): boolean {
  return isDeepStrictEqual(comparedPart(one), comparedPart(other));
}

/** As in messages of the API server: spec.template.spec.containers[name="web"].image. */
export function fieldText(path: readonly FieldStep[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step !== "string") text += `[${step.label}]`;
    else if (/^[A-Za-z0-9_]+$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

function comparedPart(object: KubeObject): Json {
  const { apiVersion: _, kind: __, metadata, status: ___, ...rest } = object as KubeObject & Json;
  const meta = (metadata ?? {}) as Json;
  const kept = comparedMetadata.filter((name) => meta[name] !== undefined);
  return { ...rest, metadata: Object.fromEntries(kept.map((name) => [name, meta[name]])) };
}

function isMetadata({ path: [first] }: FieldChange): boolean {
  return first === "metadata";
}

function compare(
  before: unknown,
  after: unknown,
  wanted: unknown,
  path: readonly FieldStep[],
  changes: FieldChange[],
): void {
  if (isDeepStrictEqual(before, after)) return;
  const key = Array.isArray(before) && Array.isArray(after) ? itemKey(before, after) : undefined;
  if (isRecord(before) && isRecord(after)) {
    compareMembers(before, after, isRecord(wanted) ? wanted : {}, path, changes);
  } else if (Array.isArray(before) && Array.isArray(after) && key !== undefined) {
    compareItems({ before, after, wanted: Array.isArray(wanted) ? wanted : [], key }, path, changes);
  } else {
    const isOwnChange = after === undefined ? wanted === undefined : wanted !== undefined;
    if (isOwnChange) changes.push({ path, before, after });
  }
}

function compareMembers(
  before: Json,
  after: Json,
  wanted: Json,
  path: readonly FieldStep[],
  changes: FieldChange[],
): void {
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    compare(before[name], after[name], wanted[name], [...path, name], changes);
  }
}

interface ItemLists {
  readonly before: readonly unknown[];
  readonly after: readonly unknown[];
  readonly wanted: readonly unknown[];
  readonly key: string;
}

function compareItems(
  { before, after, wanted, key }: ItemLists,
  path: readonly FieldStep[],
  changes: FieldChange[],
): void {
  const keyOf = (item: unknown) => (isRecord(item) ? item[key] : undefined);
  for (const value of new Set([...before, ...after].map(keyOf))) {
    const find = (items: readonly unknown[]) => items.find((item) => keyOf(item) === value);
    const item = find(before);
    const step = { index: before.indexOf(item), item, label: `${key}=${JSON.stringify(value)}` };
    compare(item, find(after), find(wanted), [...path, step], changes);
  }
}

const itemKeys = ["name", "containerPort", "port", "key", "mountPath", "topologyKey", "uid", "ip", "type"];

/** The member that identifies the items of both lists; undefined if none does, and the lists are compared as a whole. */
function itemKey(before: readonly unknown[], after: readonly unknown[]): string | undefined {
  return itemKeys.find((key) => isKeyOf(before, key) && isKeyOf(after, key));
}

function isKeyOf(items: readonly unknown[], key: string): boolean {
  const values = new Set<unknown>();
  for (const item of items) {
    const value = isRecord(item) ? item[key] : undefined;
    if (typeof value !== "string" && typeof value !== "number") return false;
    values.add(value);
  }
  return values.size === items.length;
}
