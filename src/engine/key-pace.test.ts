import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { KeyPace } from "./key-pace.ts";

test("four states in a row are applied at once, then one every two seconds", async () => {
  const clock = new FakeClock();
  const pace = new KeyPace(clock);
  for (let sequence = 1; sequence <= 4; sequence++) assert.equal(pace.waitMs("a", sequence), 0);
  assert.equal(pace.waitMs("a", 11), 2_000);
  await clock.advance(400);
  assert.equal(pace.waitMs("a", 12), 1_600);
  await clock.advance(1_600);
  assert.equal(pace.waitMs("a", 13), 0);
  assert.equal(pace.waitMs("a", 14), 2_000);
});

test("the same state again, and another key, do not wait", () => {
  const pace = new KeyPace(new FakeClock());
  for (let sequence = 1; sequence <= 11; sequence++) pace.waitMs("a", sequence);
  assert.equal(pace.waitMs("a", 4), 0);
  assert.equal(pace.waitMs("b", 12), 0);
});

test("an idle key gets its full burst back, and no more", async () => {
  const clock = new FakeClock();
  const pace = new KeyPace(clock);
  for (let sequence = 1; sequence <= 4; sequence++) pace.waitMs("a", sequence);
  await clock.advance(3_600_000);
  for (let sequence = 11; sequence <= 14; sequence++) assert.equal(pace.waitMs("a", sequence), 0);
  assert.equal(pace.waitMs("a", 21), 2_000);
});

test("when very many keys change at once, each gets one state and few get a second one", async () => {
  const clock = new FakeClock();
  const pace = new KeyPace(clock);
  const keys = Array.from({ length: 200 }, (_, index) => `key-${index}`);
  const taken = (sequence: number) => keys.filter((key) => pace.waitMs(key, sequence) === 0).length;
  assert.equal(taken(1), 200);
  assert.equal(taken(2), 16);
  assert.equal(pace.waitMs("key-199", 3), 2_000);
  assert.equal(pace.waitMs("a newcomer", 3), 0);
  await clock.advance(2_000);
  assert.equal(taken(4), 200);
});

test("writes of one state are limited too, and a new state does not wait for them", async () => {
  const clock = new FakeClock();
  const pace = new KeyPace(clock);
  for (let write = 0; write < 8; write++) {
    assert.equal(pace.waitMs("a", 1), 0);
    pace.wrote("a");
  }
  assert.equal(pace.waitMs("a", 1), 2_000);
  assert.equal(pace.waitMs("a", 2), 0);
  assert.equal(pace.waitMs("b", 1), 0);
  await clock.advance(2_000);
  assert.equal(pace.waitMs("a", 2), 0);
  pace.wrote("a");
  assert.equal(pace.waitMs("a", 2), 2_000);
  await clock.advance(3_600_000);
  for (let write = 0; write < 8; write++) pace.wrote("a");
  assert.equal(pace.waitMs("a", 2), 2_000);
});
