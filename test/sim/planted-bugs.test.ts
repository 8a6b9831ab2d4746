import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { plantedBugs } from "../../sim/planted-bugs.ts";

test("each planted bug changes exactly one place of the source", () => {
  for (const { file, from, to, without } of plantedBugs) {
    assert.equal(readFileSync(file, "utf8").split(from).length - 1, 1, `${file}: ${without}`);
    assert.notEqual(from, to, without);
  }
});

test("planted bugs have different names", () => {
  assert.equal(new Set(plantedBugs.map(({ without }) => without)).size, plantedBugs.length);
});
