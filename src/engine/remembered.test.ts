import assert from "node:assert/strict";
import { test } from "node:test";
import { Remembered } from "./remembered.ts";

test("a value is computed once for each revision, also where it is undefined", () => {
  const computed: number[] = [];
  const remembered = new Remembered<undefined>();
  for (const revision of [0, 0, 1, 1, 0])
    remembered.at(revision, () => {
      computed.push(revision);
      return undefined;
    });
  assert.deepEqual(computed, [0, 1, 0]);
});
