import assert from "node:assert/strict";
import { test } from "node:test";
import { readClientPosition, type StorePosition, standingOf } from "./client-position.ts";

const nowMs = 1_000_000;
const incarnation = { ordinal: 500n, id: "here-2", parent: "here-1", isReplica: false };
const store: StorePosition = { incarnation, counter: 10n };
const client = { incarnation, versionSeen: 10n, versionKnown: 0n };

test("a primary that is behind what an agent has seen was rolled back; a replica lags", () => {
  const replica = { ...store, incarnation: { ...incarnation, isReplica: true } };
  assert.equal(standingOf(store, client, nowMs), "same");
  assert.equal(standingOf(store, { ...client, versionSeen: 11n }, nowMs), "rolled-back");
  assert.equal(standingOf(replica, { ...client, versionSeen: 11n }, nowMs), "lagging");
});

test("a replica does not answer an agent that has seen nothing yet", () => {
  const replica = { ...store, incarnation: { ...incarnation, isReplica: true } };
  assert.equal(standingOf(replica, { ...client, versionSeen: 0n }, nowMs), "lagging");
  assert.equal(standingOf(replica, client, nowMs), "same");
  assert.equal(standingOf(store, { ...client, versionSeen: 0n }, nowMs), "same");
});

test("a row that is behind shows it too, after the counter has passed the lost versions; a missing row does not", () => {
  const known = { ...client, versionKnown: 6n };
  assert.equal(standingOf({ ...store, rowVersion: 5n }, known, nowMs), "rolled-back");
  assert.equal(standingOf({ ...store, rowVersion: 6n }, known, nowMs), "same");
  assert.equal(standingOf(store, known, nowMs), "same");
});

test("an older incarnation means nothing; a newer one is followed only if this database started it", () => {
  const of = (id: string, ordinal: bigint) => ({ ...client, incarnation: { id, ordinal, parent: "" } });
  assert.equal(standingOf(store, of("here-1", 400n), nowMs), "other");
  assert.equal(standingOf(store, of("elsewhere-1", 600n), nowMs), "superseded");
  assert.equal(standingOf(store, of("here-3", 600n), nowMs), "rolled-back");
  const replica = { ...store, incarnation: { ...incarnation, isReplica: true } };
  assert.equal(standingOf(replica, of("here-3", 600n), nowMs), "lagging");
  assert.equal(
    standingOf(store, of("here-3", 10n ** 17n), nowMs),
    "superseded",
    "nobody may use up the ordinals",
  );
});

test("headers of agents: none, damaged, complete", () => {
  assert.equal(readClientPosition(new Headers()), undefined);
  assert.equal(readClientPosition(new Headers({ "x-krane-incarnation": "nonsense" })), undefined);
  const headers = {
    "x-krane-incarnation": "5/a-1/",
    "x-krane-version-seen": "7",
    "x-krane-version-known": "-3",
  };
  assert.deepEqual(readClientPosition(new Headers(headers)), {
    incarnation: { ordinal: 5n, id: "a-1", parent: "" },
    versionSeen: 7n,
    versionKnown: 0n,
  });
});
