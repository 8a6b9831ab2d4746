import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { oursSealed } from "../../test/support/test-seal.ts";
import { DeletionGuard, type DeletionGuardOptions, type DeletionProof } from "./deletion-guard.ts";

const options: DeletionGuardOptions = {
  mode: "confirmed",
  confirmations: 3,
  minimumAgeMs: 300_000,
  budgetObjects: 3,
  budgetFraction: 0.2,
  budgetWindowMs: 600_000,
};

function proof(overrides: Partial<DeletionProof> = {}): DeletionProof {
  return {
    key: "a",
    ownership: oursSealed,
    uid: "uid-1",
    createdAt: "2025-12-31T00:00:00Z",
    authority: "absence",
    ...overrides,
  };
}

function passes(guard: DeletionGuard, keys: readonly string[], count: number, present = 100): void {
  for (let pass = 0; pass < count; pass++) {
    for (const key of keys) guard.suspect(key, `id-${key}`);
    guard.endPass({ managed: keys.length + present, present });
  }
}

test("an order deletes krane's own object at once, with the observed uid", () => {
  const guard = new DeletionGuard(options, new FakeClock());
  assert.deepEqual(guard.permit(proof({ authority: "order" })), {
    kind: "permitted",
    uid: "uid-1",
    basis: { authority: "explicit delete", reason: "its deletion was ordered" },
  });
});

test("no authority deletes an object that is not krane's, or whose uid is unknown", () => {
  const guard = new DeletionGuard(options, new FakeClock());
  const foreign = { kind: "foreign", reason: "label" } as const;
  for (const authority of ["order", "absence", "unused"] as const) {
    assert.equal(guard.permit(proof({ authority, ownership: foreign })).kind, "not-ours");
    assert.equal(guard.permit(proof({ authority, uid: "" })).kind, "not-ours");
  }
});

test("absence allows a deletion after three passes in a row, not after two", () => {
  const guard = new DeletionGuard(options, new FakeClock());
  passes(guard, ["a"], 2);
  assert.equal(guard.permit(proof()).kind, "blocked");
  passes(guard, ["a"], 1);
  assert.equal(guard.permit(proof()).kind, "permitted");
});

test("a pass that did not ask, or a control plane that knows the object again, starts the count over", () => {
  const guard = new DeletionGuard(options, new FakeClock());
  passes(guard, ["a"], 2);
  guard.endPass({ managed: 1, present: 0 });
  passes(guard, ["a"], 2);
  assert.equal(guard.permit(proof()).kind, "blocked");
  guard.clear("a");
  passes(guard, ["a"], 2);
  assert.equal(guard.permit(proof()).kind, "blocked");
});

test("passes in which fewer than half of the objects are present confirm nothing, also afterwards", () => {
  const guard = new DeletionGuard(options, new FakeClock());
  passes(guard, ["a", "b", "c"], 20, 2);
  assert.equal(guard.permit(proof()).kind, "blocked");
  passes(guard, ["a", "b", "c"], 1, 3);
  assert.equal(guard.permit(proof()).kind, "blocked");
  passes(guard, ["a", "b", "c"], 2, 3);
  assert.equal(guard.permit(proof()).kind, "permitted");
});

test("an object that is too young, or whose age is unreadable, is not deleted", () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const guard = new DeletionGuard(options, clock);
  passes(guard, ["a"], 3);
  assert.equal(guard.permit(proof({ createdAt: "2025-12-31T23:58:00Z" })).kind, "blocked");
  assert.equal(guard.permit(proof({ createdAt: undefined })).kind, "blocked");
  assert.equal(guard.permit(proof({ createdAt: "yesterday" })).kind, "blocked");
});

test("the budget is the larger of count and fraction, and recovers over time", async () => {
  const clock = new FakeClock();
  const guard = new DeletionGuard(options, clock);
  const keys = ["a", "b", "c", "d", "e", "f"];
  passes(guard, keys, 3, 6);
  const permitted = keys.filter((key) => guard.permit(proof({ key })).kind === "permitted");
  assert.equal(permitted.length, 3);
  assert.equal(guard.permit(proof({ key: "a" })).kind, "permitted", "a retry costs nothing more");
  await clock.advance(600_001);
  assert.equal(guard.permit(proof({ key: "f" })).kind, "permitted");
});

test("only a held-back deletion can be released, and a release overrides age, budget and mode", () => {
  const guard = new DeletionGuard({ ...options, mode: "explicit" }, new FakeClock());
  assert.equal(guard.release("a"), false);
  passes(guard, ["a"], 3);
  assert.match(guard.blocked()[0]?.key ?? "", /^a$/);
  assert.equal(guard.permit(proof()).kind, "blocked");
  assert.equal(guard.release("a"), true);
  assert.equal(guard.permit(proof({ createdAt: undefined })).kind, "permitted");
  assert.equal(guard.permit(proof({ ownership: { kind: "foreign", reason: "x" } })).kind, "not-ours");
});

test("whatever the control plane answers, absence never deletes more than the budget per window", () => {
  const pass = fc.record({ absent: fc.array(fc.nat(19), { maxLength: 20 }), present: fc.nat(20) });
  fc.assert(
    fc.property(fc.array(pass, { maxLength: 25 }), (all) => {
      const guard = new DeletionGuard(options, new FakeClock());
      const deleted = new Set<string>();
      for (const { absent, present } of all) {
        const keys = [...new Set(absent)].map(String).filter((key) => !deleted.has(key));
        for (const key of keys) guard.suspect(key, key);
        guard.endPass({ managed: 20, present: Math.min(present, 20 - keys.length) });
        for (const key of keys) if (guard.permit(proof({ key })).kind === "permitted") deleted.add(key);
        assert.ok(deleted.size <= 4);
      }
    }),
  );
});
