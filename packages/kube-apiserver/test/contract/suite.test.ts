// The suite itself: its size, and that a case can be found by its name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptedDifferences } from "./accepted-differences.ts";
import { contractCases } from "./contract-cases.ts";

test("every case has a name of its own", () => {
  const names = contractCases.map((one) => one.name);
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  assert.deepEqual(repeated, []);
});

test("the contract has not shrunk below 150 cases", () => {
  assert.ok(contractCases.length >= 150);
});

test("every accepted difference is of a case that exists, and has a reason", () => {
  const names = new Set(contractCases.map((one) => one.name));
  for (const [target, differences] of Object.entries(acceptedDifferences)) {
    for (const [name, reason] of Object.entries(differences)) {
      assert.ok(names.has(name), `${target}: there is no case "${name}"`);
      assert.ok(reason.length > 20, `${target}: "${name}" needs a reason`);
    }
  }
});
