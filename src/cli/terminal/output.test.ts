import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { renderValue } from "./output.ts";

// A control of eight bits, one that turns the direction of writing, an invisible tag beyond the first plane, a line end.
const hostile = "a\u007f\u009b31m\u202edc\u{e0041}\u2028z";
const value = {
  name: hostile,
  [hostile]: [1, "plain", true],
  text: `first\nsecond ${"word ".repeat(40)}${hostile}`,
};

for (const format of ["json", "yaml"] as const)
  test(`nothing in ${format} is a command for a terminal, and programs read what was meant`, async () => {
    const text = await renderValue(value, format);
    assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    assert.deepEqual(format === "json" ? JSON.parse(text) : parse(text), value);
  });
