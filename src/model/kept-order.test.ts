import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openOrder, orderAnnotations, readOrderMark, sealOrder } from "./kept-order.ts";
import { annotationKeys, fieldManager } from "./labels.ts";

const message = Uint8Array.of(10, 4, 97, 99, 109, 101);
const blob = "eyJzZWNyZXRzIjp7fX0=";

/** An object whose annotations krane has applied, except for those that somebody else wrote. */
function metadata(annotations: Record<string, string>, ofOthers: readonly string[] = []) {
  const own = Object.keys(annotations).filter((key) => !ofOthers.includes(key));
  const fields = { "f:annotations": Object.fromEntries(own.map((key) => [`f:${key}`, {}])) };
  const entry = { manager: fieldManager, operation: "Apply", fieldsV1: { "f:metadata": fields } };
  return { annotations, managedFields: [entry] };
}

describe("a sealed order", () => {
  test("opens with the blob that it was sealed with", () => {
    for (const given of ["", blob]) assert.deepEqual(openOrder(sealOrder(message, given), given), message);
  });

  test("does not open with another blob, and does not contain the blob", () => {
    const text = sealOrder(message, blob);
    for (const other of ["", "e30="]) assert.equal(openOrder(text, other), undefined);
    assert.equal(openOrder(sealOrder(message, ""), blob), undefined);
    assert.ok(!text.includes(blob));
  });
});

describe("the mark of an order", () => {
  const kept = { text: sealOrder(message, ""), readinessId: "rd_1" };
  const annotations = orderAnnotations(kept) ?? assert.fail("it has annotations");

  test("is read back from its annotations", () => {
    assert.deepEqual(readOrderMark(metadata(annotations), ""), { ...kept, blob: "" });
  });

  test("is absent on objects from the stream", () => {
    assert.equal(orderAnnotations(undefined), undefined);
    assert.equal(readOrderMark(metadata({}), ""), undefined);
    assert.equal(readOrderMark(undefined, ""), undefined);
  });

  test("counts only for annotations that krane wrote", () => {
    const { order, origin } = annotationKeys;
    assert.deepEqual(readOrderMark(metadata(annotations, [order]), ""), { readinessId: "rd_1", blob: "" });
    assert.deepEqual(readOrderMark(metadata(annotations, [origin]), ""), { ...kept, blob: "" });
    assert.equal(readOrderMark(metadata(annotations, [order, origin]), ""), undefined);
    assert.equal(readOrderMark({ annotations }, ""), undefined);
    const byUpdate = metadata(annotations).managedFields.map((one) => ({ ...one, operation: "Update" }));
    assert.equal(readOrderMark({ annotations, managedFields: byUpdate }, ""), undefined);
  });
});
