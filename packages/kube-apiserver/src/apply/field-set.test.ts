import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeFieldSet, encodeFieldSet, type FieldSet, FieldSetBuilder } from "./field-set.ts";
import { fieldElement, keyElement, type PathElement, printPath, valueElement } from "./path-element.ts";

const element: fc.Arbitrary<PathElement> = fc.oneof(
  fc.constantFrom("a", "b", "spec", "__proto__").map(fieldElement),
  fc.constantFrom("web", "db").map((name) => keyElement({ name })),
  fc.constantFrom("x", "y").map(valueElement),
);
const path = fc.array(element, { minLength: 1, maxLength: 4 });
const paths = fc.array(path, { maxLength: 8 });

function setOf(list: readonly (readonly PathElement[])[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const item of list) builder.insert(item);
  return builder.build();
}

const set = paths.map(setOf);

function listed(fields: FieldSet): Set<string> {
  return new Set([...fields.paths()].map((item) => JSON.stringify(item)));
}

test("union, intersection and difference are those of the sets of paths", () => {
  fc.assert(
    fc.property(set, set, (left, right) => {
      const [l, r] = [listed(left), listed(right)];
      assert.deepEqual(listed(left.union(right)), new Set([...l, ...r]));
      assert.deepEqual(listed(left.intersection(right)), new Set([...l].filter((item) => r.has(item))));
      assert.deepEqual(listed(left.difference(right)), new Set([...l].filter((item) => !r.has(item))));
    }),
  );
});

test("a recursive difference drops everything below the dropped paths", () => {
  fc.assert(
    fc.property(set, paths, (left, dropped) => {
      const rest = [...left.recursiveDifference(setOf(dropped)).paths()];
      const isBelow = (item: readonly PathElement[]) =>
        dropped.some((prefix) => prefix.every((step, index) => item[index] === step));
      assert.deepEqual(
        rest,
        [...left.paths()].filter((item) => !isBelow(item)),
      );
    }),
  );
});

test("encoding to FieldsV1 and back keeps the set", () => {
  fc.assert(
    fc.property(set, (fields) => {
      const text = JSON.stringify(encodeFieldSet(fields));
      assert.ok(decodeFieldSet(JSON.parse(text)).equals(fields));
    }),
  );
});

test("FieldsV1 marks an element that is a member and has a subtree with a dot", () => {
  const fields = setOf([
    [fieldElement("labels")],
    [fieldElement("labels"), fieldElement("app")],
    [fieldElement("replicas")],
  ]);
  assert.deepEqual(encodeFieldSet(fields), { "f:labels": { ".": {}, "f:app": {} }, "f:replicas": {} });
});

test("keys with another order or spacing identify the same item", () => {
  const sent = decodeFieldSet({ 'k:{"protocol": "TCP", "containerPort": 80}': { "f:name": {} } });
  assert.ok(sent.has([keyElement({ containerPort: 80, protocol: "TCP" }), fieldElement("name")]));
});

test("paths print as in conflict messages", () => {
  const printed = printPath([fieldElement("spec"), keyElement({ name: "web" }), valueElement("x")]);
  assert.equal(printed, '.spec[name="web"][="x"]');
});
