import assert from "node:assert/strict";
import { test } from "node:test";
import { notify } from "./notify.ts";

test("an observer is called at once, and its throw or rejection is ignored", async () => {
  const seen: string[] = [];
  notify(() => {
    seen.push("throws");
    throw new Error("bad label");
  });
  notify(async () => {
    seen.push("rejects");
    throw new Error("sink is gone");
  });
  assert.deepEqual(seen, ["throws", "rejects"]);
  // An unhandled rejection would fail this test in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
});
