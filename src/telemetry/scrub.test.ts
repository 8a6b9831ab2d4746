import assert from "node:assert/strict";
import { test } from "node:test";
import { scrub } from "./scrub.ts";

test("sentences about tokens stay, and tokens are removed", () => {
  for (const text of ["a valid bearer token is needed", "no bearer token.", "bearer tokens, and others"])
    assert.equal(scrub(text, 100), text);
  for (const token of ["abc", "token-of-the-agents", "token.abc", "tokens", "TOKENS.x", "token="]) {
    const text = scrub(`refused: Bearer ${token}x was sent`, 100);
    assert.equal(text, "refused: Bearer [redacted] was sent");
  }
});
