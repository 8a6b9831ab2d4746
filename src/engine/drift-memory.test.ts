import assert from "node:assert/strict";
import { test } from "node:test";
import { DriftMemory } from "./drift-memory.ts";

test("what the server stored for a manifest counts as in sync, for that manifest only", () => {
  const memory = new DriftMemory();
  memory.wrote("a", "sent", "changed-by-webhook");
  assert.ok(memory.isAsStored("a", "sent", "changed-by-webhook"));
  assert.ok(!memory.isAsStored("a", "sent", "changed-by-hand"));
  assert.ok(!memory.isAsStored("a", "other", "changed-by-webhook"));
});
