import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { retryWhileUnreachable } from "./checks.ts";

const never = new AbortController().signal;
const refused = new Error("connection refused");
const isUnreachable = (error: unknown) => error === refused;

/** Calls that fail with these errors, one after the other, and then succeed. */
function scripted(errors: readonly Error[]) {
  const left = [...errors];
  return async () => {
    const error = left.shift();
    if (error !== undefined) throw error;
    return "response";
  };
}

test("an address that is unreachable for a moment is tried again", async () => {
  const clock = new FakeClock();
  const response = retryWhileUnreachable(scripted([refused, refused]), isUnreachable, clock, never);
  await clock.advance(2_000);
  assert.equal(await response, "response");
});

test("an address that stays unreachable fails after two seconds", async () => {
  const clock = new FakeClock();
  const errors = Array.from({ length: 10 }, () => refused);
  const response = assert.rejects(
    retryWhileUnreachable(scripted(errors), isUnreachable, clock, never),
    refused,
  );
  await clock.advance(2_000);
  await response;
});

test("other errors are not tried again", async () => {
  const rejected = new Error("rejected the token");
  const response = retryWhileUnreachable(scripted([rejected]), isUnreachable, new FakeClock(), never);
  await assert.rejects(response, rejected);
});
