import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import type { DesiredResponse } from "../control-plane/connection.ts";
import type { DesiredMessage, ReadState, Want } from "./desired-message.ts";
import { DesiredStore } from "./desired-store.ts";
import { UnconfirmedKeys } from "./unconfirmed-keys.ts";

const never = new AbortController().signal;
const apply: Want<string> = { kind: "apply", spec: "spec" };

function state(version: bigint, want: Want<string>): DesiredMessage<string> {
  return { key: "a", id: want.kind === "delete" ? undefined : "id-a", version, want };
}

/** A new leader that heard these states before its term. */
function setUp(...heard: readonly DesiredMessage<string>[]) {
  const store = new DesiredStore<string>(new FakeClock());
  for (const message of heard) store.receive(message);
  const world = {
    response: { kind: "not-found" } as DesiredResponse<ReadState<string>>,
    object: undefined as { key: string; id: string } | undefined,
    isSuspected: false,
    isConfirmed: false,
    asked: 0,
    replays: 0,
  };
  const keys = new UnconfirmedKeys<string>({
    store,
    definition: { managedByKey: () => world.object },
    guard: { isSuspected: () => world.isSuspected, isConfirmed: () => world.isConfirmed },
    statuses: { forget: () => undefined },
    ask: async () => {
      world.asked += 1;
      return world.response;
    },
    enqueue: () => undefined,
    replay: () => {
      world.replays += 1;
    },
  });
  keys.begin();
  return { store, world, confirm: () => keys.confirm("a", never) };
}

const found = (message: DesiredMessage<string>): DesiredResponse<ReadState<string>> => ({
  kind: "found",
  state: { kind: "message", message },
  fingerprint: "f",
});

test("a Delete that a response contradicts waits until the stream, read again once, has repeated it", async () => {
  const { store, world, confirm } = setUp(state(1n, apply), state(2n, { kind: "delete" }));
  world.response = found(state(0n, apply));
  assert.deepEqual([await confirm(), await confirm(), world.replays], [false, false, 1]);
  store.opened();
  store.receive(state(2n, { kind: "delete" }));
  assert.deepEqual([await confirm(), await confirm(), world.asked], [true, true, 3]);
});

test("a newer state of the stream replaces a Delete that a response contradicts", async () => {
  const { store, world, confirm } = setUp(state(1n, apply), state(2n, { kind: "delete" }));
  world.response = found(state(0n, apply));
  assert.equal(await confirm(), false);
  store.receive(state(3n, apply));
  assert.deepEqual([await confirm(), store.get("a")?.want.kind], [true, "apply"]);
});

test("a Delete that a response contradicts is applied when a later response agrees", async () => {
  const { world, confirm } = setUp(state(1n, apply), state(2n, { kind: "delete" }));
  world.response = found(state(0n, apply));
  assert.equal(await confirm(), false);
  world.response = found(state(0n, { kind: "delete" }));
  assert.deepEqual([await confirm(), world.replays], [true, 1]);
});

test("a state with a lower version confirms nothing, and the resync decides which one is older", async () => {
  const { store, world, confirm } = setUp(state(7n, apply));
  for (const want of [{ kind: "apply", spec: "another" }, { kind: "delete" }] as const) {
    world.response = found(state(3n, want));
    for (let attempt = 0; attempt < 5; attempt++) assert.equal(await confirm(), false);
  }
  assert.deepEqual(store.get("a")?.want, apply);
  world.response = found(state(7n, apply));
  assert.equal(await confirm(), true);
});

test("a response that cannot be read confirms nothing", async () => {
  const { world, confirm } = setUp(state(1n, apply));
  world.response = {
    kind: "found",
    state: { kind: "bare", version: 2n, unreadable: true },
    fingerprint: "f",
  };
  assert.equal(await confirm(), false);
  world.response = found(state(1n, apply));
  assert.equal(await confirm(), true);
});

test("a key that the control plane does not know is left to the resync, and asked for each time", async () => {
  const { world, confirm } = setUp(state(1n, apply));
  world.isSuspected = true;
  assert.equal(await confirm(), false, "an object that is not there is not created");
  world.object = { key: "a", id: "id-a" };
  assert.equal(await confirm(), true, "one that is there is held back or deleted");
  world.object = undefined;
  assert.equal(await confirm(), false);
  world.isConfirmed = true;
  assert.deepEqual([await confirm(), world.asked], [true, 4]);
});

test("a Delete of what the control plane does not know is applied", async () => {
  const { confirm } = setUp(state(1n, apply), state(2n, { kind: "delete" }));
  assert.equal(await confirm(), true);
});
