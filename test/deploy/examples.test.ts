import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsOf } from "../support/deployed-parts.ts";
import { readProjectFile } from "../support/project-files.ts";

for (const [part, name] of [
  ["agent", "examples/krane.toml"],
  ["server", "examples/server.toml"],
  ["vault", "examples/vault.toml"],
] as const)
  test(`${name} is valid as it stands`, () => {
    assert.deepEqual(problemsOf(part, readProjectFile(name)), []);
  });
