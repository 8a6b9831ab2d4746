import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { expand } from "./expand.ts";
import { ok } from "./problem.ts";

// A reference in a plain string looks like a forgotten template literal to the linter,
// so "@" stands for the dollar sign in this file.
const dollars = (text: string) => text.replaceAll("@", "$");

const env = { NAME: "value", EMPTY: "", TRICKY: dollars('"\n@{NAME}@@'), _x1: "under" };

test("references are expanded once", () => {
  const cases: [string, string][] = [
    ["plain", "plain"],
    ["a-@{NAME}-b", "a-value-b"],
    ["@{NAME}@{NAME}", "valuevalue"],
    ["@{EMPTY}", ""],
    ["@{_x1}", "under"],
    ["@{TRICKY}", env.TRICKY],
  ];
  for (const [text, expected] of cases) assert.deepEqual(expand(dollars(text), env), ok(expected), text);
});

test("two dollars become one, and a dollar that is not before a brace stays", () => {
  const cases: [string, string][] = [
    ["@@", "@"],
    ["@@@@", "@@"],
    ["@@@", "@@"],
    ["@", "@"],
    ["pa@word", "pa@word"],
    ["@NAME", "@NAME"],
    ["@1 @? @-", "@1 @? @-"],
    ["@@{NAME}", "@{NAME}"],
    ["@@@{NAME}", "@value"],
    ["{NAME}", "{NAME}"],
  ];
  for (const [text, expected] of cases) {
    assert.deepEqual(expand(dollars(text), env), ok(dollars(expected)), text);
  }
});

test("every undefined variable is named, even one that is an inherited property", () => {
  const result = expand(dollars("@{A} @{NAME} @{B} @{A} @{toString}"), env);
  assert.equal(result.kind, "bad");
  assert.match(result.message, /variables A, B, toString, which are not set/);
});

test("an unclosed or invalid reference is rejected without quoting it", () => {
  for (const text of ["@{", "@{NAME", "x@{}", "@{CANARY here}", "@{1CANARY}", "@{CANARY-x}", "@{ NAME }"]) {
    const result = expand(dollars(text), env);
    assert.equal(result.kind, "bad", text);
    assert.ok(!JSON.stringify(result).includes("CANARY"), text);
  }
});

test("any text is unchanged when its dollars are doubled", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("@", "{", "}", "A", "_", " ") }), (text) => {
      assert.deepEqual(expand(dollars(text.replaceAll("@", "@@")), {}), ok(dollars(text)));
    }),
  );
});

test("a text that expands too much is rejected", () => {
  const result = expand(dollars("@{BIG}").repeat(50_000), { BIG: "x".repeat(100_000) });
  assert.equal(result.kind, "bad");
});
