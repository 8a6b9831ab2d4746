import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import type { Outcome } from "../engine/object-status.ts";
import type { OrderOutcome } from "../engine/running-controller.ts";
import { completeOrder, refusalOf } from "./scheduler-service.ts";

const never = new AbortController().signal;
const outcomeOf = (outcome: Outcome): OrderOutcome => ({ outcome, reason: "why", fieldPath: undefined });

for (const [outcome, onApply, onDelete] of [
  ["applied", undefined, undefined],
  ["unchanged", undefined, undefined],
  ["deleted", undefined, undefined],
  ["parked", Code.FailedPrecondition, Code.FailedPrecondition],
  ["conflict", Code.AlreadyExists, Code.FailedPrecondition],
  ["blocked", Code.FailedPrecondition, Code.FailedPrecondition],
  ["retrying", Code.Unavailable, Code.Unavailable],
  ["pending", Code.Unavailable, Code.Unavailable],
] as const)
  test(`an order that is ${outcome} returns its code and reason`, () => {
    const refusals = [refusalOf("apply", outcomeOf(outcome)), refusalOf("delete", outcomeOf(outcome))];
    assert.deepEqual(
      refusals.map((refusal) => refusal?.code),
      [onApply, onDelete],
    );
    for (const refusal of refusals) if (refusal) assert.match(refusal.rawMessage, /why/);
  });

test("an invalid order is the caller's error", () => {
  const refusal = refusalOf("apply", {
    ...outcomeOf("parked"),
    reason: "image is required",
    isInvalid: true,
  });
  assert.deepEqual([refusal?.code, refusal?.rawMessage], [Code.InvalidArgument, "image is required"]);
});

test("an order that could not be recorded was not accepted, and may be retried", () => {
  const refusal = refusalOf("apply", { ...outcomeOf("retrying"), isUnrecorded: true });
  assert.deepEqual([refusal?.code, refusal?.rawMessage], [Code.Unavailable, "order not accepted: why"]);
});

test("an order that may be recorded may have been accepted", () => {
  const refusal = refusalOf("apply", { ...outcomeOf("retrying"), isUnrecorded: true, mayBeRecorded: true });
  assert.deepEqual(
    [refusal?.code, refusal?.rawMessage],
    [Code.Unavailable, "krane may have accepted it: why"],
  );
});

describe("waiting for an order", () => {
  const hanging = (signal: AbortSignal) =>
    new Promise<OrderOutcome>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const codeOf = (error: unknown) => (error instanceof ConnectError ? error.code : undefined);

  test("has a limit for callers that set no deadline", async () => {
    const clock = new FakeClock();
    const waiting = completeOrder("apply", hanging, { clock, ending: never }, never).catch(codeOf);
    await clock.advance(60_000);
    assert.equal(await waiting, Code.DeadlineExceeded);
    assert.equal(clock.timerCount, 0);
  });

  test("ends with the caller's own deadline, and when the agent stops", async () => {
    const clock = new FakeClock();
    const caller = new AbortController();
    const late = new ConnectError("late", Code.DeadlineExceeded);
    const waiting = completeOrder("apply", hanging, { clock, ending: never }, caller.signal).catch(
      (error) => error,
    );
    caller.abort(late);
    assert.equal(await waiting, late);
    const agent = new AbortController();
    agent.abort();
    const refused = completeOrder(
      "apply",
      () => Promise.reject(agent.signal.reason),
      { clock, ending: agent.signal },
      never,
    );
    assert.equal(await refused.catch(codeOf), Code.Unavailable);
    assert.equal(clock.timerCount, 0);
  });
});
