import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { CallBudget } from "./call-budget.ts";

const mebibyte = 1024 * 1024;
const isExhausted = (error: unknown) =>
  error instanceof ConnectError && error.code === Code.ResourceExhausted;

/** Starts calls of the largest size until one is rejected. */
function fill(budget: CallBudget, address: string) {
  const charges = [];
  for (;;) {
    const charge = budget.begin(address);
    try {
      charge.raiseTo(mebibyte);
    } catch (error) {
      assert.ok(isExhausted(error));
      charge.release();
      return charges;
    }
    charges.push(charge);
  }
}

describe("the memory of a service's calls", () => {
  test("one address may take a quarter of it, and the others still have room", () => {
    const budget = new CallBudget(mebibyte);
    assert.equal(fill(budget, "10.0.0.1").length, 7);
    assert.equal(fill(budget, "10.0.0.2").length, 7);
  });

  test("all addresses together cannot exceed it", () => {
    const budget = new CallBudget(mebibyte);
    const counts = Array.from({ length: 10 }, (_, index) => fill(budget, `10.0.0.${index}`).length);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      31,
    );
    assert.ok(budget.heldBytes <= 32 * mebibyte);
  });

  test("a call's memory is released once when it ends, even if it is released twice", () => {
    const budget = new CallBudget(mebibyte);
    for (let round = 0; round < 3; round++)
      for (const charge of fill(budget, "10.0.0.1")) {
        charge.release();
        charge.release();
      }
    assert.equal(budget.heldBytes, 0);
  });

  test("a call is charged for its largest message, not for the sum of all", () => {
    const budget = new CallBudget(mebibyte);
    const charge = budget.begin("10.0.0.1");
    for (let bytes = 0; bytes < 1_000 * mebibyte; bytes += mebibyte) charge.raiseTo(bytes);
    charge.raiseTo(Number.POSITIVE_INFINITY);
    assert.ok(budget.heldBytes <= 1.1 * mebibyte);
  });

  test("calls that send nothing are limited too", () => {
    const budget = new CallBudget(1);
    assert.throws(() => {
      for (let count = 0; count < 3_000; count++) budget.begin("10.0.0.1");
    }, isExhausted);
    budget.begin("10.0.0.2");
  });
});
