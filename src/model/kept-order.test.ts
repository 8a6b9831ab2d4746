import assert from "node:assert/strict";
import { test } from "node:test";
import { orderAnnotations } from "./kept-order.ts";

test("an object that a call ordered says so, and one from the stream has no marks", () => {
  assert.equal(orderAnnotations(undefined), undefined);
  assert.deepEqual(orderAnnotations({}), { "krane.unkey.com/origin": "scheduler" });
  assert.deepEqual(orderAnnotations({ readinessId: "rd_1" }), {
    "krane.unkey.com/origin": "scheduler",
    "krane.unkey.com/readiness-id": "rd_1",
  });
});
