import assert from "node:assert/strict";
import { test } from "node:test";
import { compareTexts } from "./listing.ts";

test("cells are sorted by their numbers, and ages by their length", () => {
  const sorted = (texts: readonly string[]) => texts.toSorted(compareTexts);
  assert.deepEqual(sorted(["3h", "2d", "50s", "4m", "59s"]), ["50s", "59s", "4m", "3h", "2d"]);
  assert.deepEqual(sorted(["web-10", "web-9", "1/2", "10/2", ""]), ["", "1/2", "10/2", "web-9", "web-10"]);
});
