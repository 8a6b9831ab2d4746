// Checks what all code that reads the kinds assumes about every descriptor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ObjectSpecSchema } from "../gen/krane/admin/v1/admin_pb.ts";
import { allKinds, kindNames, kindOfController, kindOfObject } from "./kinds.ts";

test("the admin protocol calls the kinds by their names", () => {
  const [spec] = ObjectSpecSchema.oneofs;
  const cases = spec?.fields.map(({ localName, message }) => [localName, message?.typeName]);
  assert.deepEqual(
    cases,
    allKinds.map(({ name, applySchema }) => [name, applySchema.typeName]),
  );
});

test("a kind is found under its own name, controller and object kind, and no other has a word of its", () => {
  for (const kind of allKinds) {
    assert.equal(kindOfController(kind.controller), kind);
    assert.equal(kindOfObject(kind.objectKind), kind);
  }
  assert.deepEqual(
    allKinds.map(({ name }) => name),
    kindNames,
  );
  const words = allKinds.flatMap(({ name, plural, aliases }) => [name, plural, ...aliases]);
  assert.deepEqual(words, [...new Set(words)]);
});

test("the documents of a kind say its name, and its id is their first field", async () => {
  for (const { name, loadDocument, rpcs } of allKinds) {
    const { schema } = await loadDocument();
    assert.equal(schema.kind, name);
    assert.equal(schema.word.toLowerCase(), name);
    const [id] = schema.fields;
    assert.equal(id?.name, "id");
    assert.equal(id?.wireName.replaceAll("_", ""), rpcs.idField.toLowerCase());
  }
});

test("a kind with pods shows how many are ready, and one without does not", () => {
  for (const { makesPods, view } of allKinds) assert.equal(view.columns.includes("ready"), makesPods);
});
