import assert from "node:assert/strict";
import { test } from "node:test";
import { collectProblems, describeProblems, quote } from "./field-problem.ts";

test("a message without problems is valid", () => {
  assert.deepEqual(
    collectProblems(() => 1),
    { kind: "valid", spec: 1 },
  );
});

test("all problems are kept, in order, and form sentences", () => {
  const parsed = collectProblems((refuse) => {
    refuse("image", "is required");
    refuse("port", "is too large");
  });
  assert.ok(parsed.kind === "invalid");
  assert.equal(describeProblems(parsed.problems), "image is required; port is too large");
});

test("a message with a thousand problems lists only the first few", () => {
  const parsed = collectProblems((refuse) => {
    for (let index = 0; index < 1_000; index += 1) refuse(`command[${index}]`, "is wrong");
  });
  assert.ok(parsed.kind === "invalid");
  assert.equal(parsed.problems.length, 32);
});

test("quoted text is short and cannot break out of its line", () => {
  assert.equal(quote("a\n\u001b[2J"), '"a\\n\\u001b[2J"');
  assert.equal(
    quote("\u009b2J\u007f\u2028\u202e\u{1f600}"),
    '"\\u009b2J\\u007f\\u2028\\u202e\\ud83d\\ude00"',
  );
  assert.ok(quote("x".repeat(1_000)).length < 80);
});
