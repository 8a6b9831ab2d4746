// Compares two states of an object. The differences are sets of field paths.
import { equalJson, fieldOf, isObject, type Json } from "../json.ts";
import type { Schema } from "../schema.ts";
import { type FieldSet, FieldSetBuilder } from "./field-set.ts";
import { fieldElement, type PathElement } from "./path-element.ts";
import { childSchema, isAtomicList, isAtomicMap, itemElement, itemSchema, shapeOf } from "./typed-value.ts";

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

type Side = Json | undefined;

export function compareValues(schema: Schema, left: Json, right: Json): Comparison {
  const walk = new ComparisonWalk();
  walk.compare(schema, left, right, []);
  return walk.result();
}

/** The comparison without the given fields and everything below them. */
export function withoutFields(comparison: Comparison, ignored: FieldSet): Comparison {
  return {
    added: comparison.added.recursiveDifference(ignored),
    modified: comparison.modified.recursiveDifference(ignored),
    removed: comparison.removed.recursiveDifference(ignored),
  };
}

class ComparisonWalk {
  private readonly added = new FieldSetBuilder();
  private readonly modified = new FieldSetBuilder();
  private readonly removed = new FieldSetBuilder();

  result(): Comparison {
    return { added: this.added.build(), modified: this.modified.build(), removed: this.removed.build() };
  }

  compare(schema: Schema, left: Side, right: Side, path: readonly PathElement[]): void {
    if (left !== undefined && right !== undefined && shapesDiffer(schema, left, right)) {
      // A free-form field may have changed its shape, for example from a map to a list, so both shapes are compared.
      this.compareAs(shapeOf(schema, left), schema, left, right, path);
      this.compareAs(shapeOf(schema, right), schema, left, right, path);
      return;
    }
    const isLeaf = this.compareAs(shapeOf(schema, right ?? left), schema, left, right, path);
    if (isLeaf) return;
    if (left === undefined) this.added.insert(path);
    else if (right === undefined) this.removed.insert(path);
  }

  private compareAs(
    shape: "scalar" | "map" | "list",
    schema: Schema,
    left: Side,
    right: Side,
    path: readonly PathElement[],
  ): boolean {
    if (shape === "map") {
      if (isAtomicMap(schema) || (isEmptyMap(left) && isEmptyMap(right))) return this.leaf(left, right, path);
      this.compareMaps(schema, left, right, path);
      return false;
    }
    if (shape === "list") {
      if (isAtomicList(schema) || (isEmptyList(left) && isEmptyList(right))) {
        return this.leaf(left, right, path);
      }
      this.compareLists(schema, left, right, path);
      return false;
    }
    return this.leaf(left, right, path);
  }

  private leaf(left: Side, right: Side, path: readonly PathElement[]): true {
    if (left === undefined) this.added.insert(path);
    else if (right === undefined) this.removed.insert(path);
    else if (!equalJson(left, right)) this.modified.insert(path);
    return true;
  }

  private compareMaps(schema: Schema, left: Side, right: Side, path: readonly PathElement[]): void {
    const before = isObject(left) ? left : {};
    const after = isObject(right) ? right : {};
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const place = [...path, fieldElement(key)];
      this.compare(childSchema(schema, key), fieldOf(before, key), fieldOf(after, key), place);
    }
  }

  private compareLists(schema: Schema, left: Side, right: Side, path: readonly PathElement[]): void {
    const before = groupItems(schema, left);
    const after = groupItems(schema, right);
    for (const element of new Set([...before.keys(), ...after.keys()])) {
      const lefts = before.get(element) ?? [];
      const rights = after.get(element) ?? [];
      const place = [...path, element];
      if (lefts.length <= 1 && rights.length <= 1) {
        this.compare(itemSchema(schema), lefts[0], rights[0], place);
      } else if (lefts.length >= 2 && rights.length >= 2) {
        if (!equalJson(lefts, rights)) this.modified.insert(place);
      } else if (lefts.length >= 2) {
        if (rights[0] !== undefined) this.compare(itemSchema(schema), undefined, rights[0], place);
        this.removed.insert(place);
      } else {
        if (lefts[0] !== undefined) this.compare(itemSchema(schema), lefts[0], undefined, place);
        this.added.insert(place);
      }
    }
  }
}

function shapesDiffer(schema: Schema, left: Json, right: Json): boolean {
  return left !== null && right !== null && shapeOf(schema, left) !== shapeOf(schema, right);
}

function groupItems(schema: Schema, list: Side): Map<PathElement, Json[]> {
  const groups = new Map<PathElement, Json[]>();
  for (const item of Array.isArray(list) ? list : []) {
    const element = itemElement(schema, item);
    groups.set(element, [...(groups.get(element) ?? []), item]);
  }
  return groups;
}

function isEmptyMap(value: Side): boolean {
  return !isObject(value) || Object.keys(value).length === 0;
}

function isEmptyList(value: Side): boolean {
  return !Array.isArray(value) || value.length === 0;
}
