// SECURITY.md against what is real: every test that shows an attack exists.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { projectRoot, readProjectFile } from "../support/project-files.ts";

const rows = readProjectFile("SECURITY.md")
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => line.split(" | "));

test("every row of the table of attacks says who, what and what they get, and names tests that exist", () => {
  const [head, ...attacks] = rows;
  assert.equal(head?.length, 4);
  assert.ok(attacks.length >= 20);
  for (const row of attacks) {
    assert.equal(row.length, 4, row.join(" | "));
    for (const [, path = ""] of row.at(-1)?.matchAll(/`(.*?)`/g) ?? [])
      assert.ok(existsSync(resolve(projectRoot, path)), path);
  }
});
