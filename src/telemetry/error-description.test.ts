import assert from "node:assert/strict";
import { test } from "node:test";
import { systemCodeOf } from "./error-description.ts";

test("the code is found in the causes, and a number does not count", () => {
  const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  const wrapped = Object.assign(new Error("outer", { cause: refused }), { code: 14 });
  assert.equal(systemCodeOf(wrapped), "ECONNREFUSED");
  assert.equal(systemCodeOf(new Error("nothing")), undefined);
  assert.equal(systemCodeOf("no error"), undefined);
});

test("circular causes end", () => {
  const one = new Error("one");
  one.cause = new Error("other", { cause: one });
  assert.equal(systemCodeOf(one), undefined);
});
