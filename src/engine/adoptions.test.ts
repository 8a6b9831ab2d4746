import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { Adoptions } from "./adoptions.ts";

const name = "ReplicaSet acme/web";

test("a permission is for one object and one uid", () => {
  const adoptions = new Adoptions(new FakeClock());
  assert.equal(adoptions.allow(name, "u1"), true);
  assert.equal(adoptions.allow(name, "u1"), false, "it was allowed before");
  assert.equal(adoptions.isAllowed(name, "u1"), true);
  assert.equal(adoptions.isAllowed("ReplicaSet acme/other", "u1"), false);
  assert.equal(adoptions.isAllowed(name, "u2"), false);
});

test("a permission is used once, and ends after an hour", async () => {
  const clock = new FakeClock();
  const adoptions = new Adoptions(clock);
  adoptions.allow(name, "u1");
  adoptions.used(name);
  assert.equal(adoptions.isAllowed(name, "u1"), false);
  adoptions.allow(name, "u1");
  await clock.advance(3_600_000);
  assert.equal(adoptions.isAllowed(name, "u1"), false);
});
