import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { ChangeSignal } from "../concurrency/change-signal.ts";
import { StreamGate } from "./stream-gate.ts";

const isUnavailable = (error: unknown) => error instanceof ConnectError && error.code === Code.Unavailable;

/** Brings its numbers, then waits for ever. */
const numbers = (...values: readonly number[]) =>
  async function* stream(signal: AbortSignal) {
    yield* values;
    await new ChangeSignal().wait(signal);
  };

test("a cut ends streams that wait and streams that are between two messages, and lets new ones in", async () => {
  const gate = new StreamGate();
  const { signal } = new AbortController();
  const waiting = gate.guard(numbers(), signal);
  const between = gate.guard(numbers(1, 2), signal);
  const pending = waiting.next();
  await between.next();
  assert.equal(gate.openCount, 2);
  gate.cut();
  await assert.rejects(pending, isUnavailable);
  await assert.rejects(between.next(), isUnavailable);
  assert.equal(gate.openCount, 0);
  const fresh = gate.guard(numbers(3), signal);
  assert.equal((await fresh.next()).value, 3);
});

test("a closed gate ends every stream, also those that come later", async () => {
  const gate = new StreamGate();
  const { signal } = new AbortController();
  const open = gate.guard(numbers(), signal).next();
  gate.close();
  gate.cut();
  await assert.rejects(open, isUnavailable);
  await assert.rejects(gate.guard(numbers(1), signal).next(), isUnavailable);
});

test("a paused gate holds messages back and can still be cut", async () => {
  const gate = new StreamGate();
  const { signal } = new AbortController();
  const stream = gate.guard(numbers(1, 2), signal);
  gate.pause();
  const first = stream.next();
  gate.resume();
  assert.equal((await first).value, 1);
  gate.pause();
  const second = stream.next();
  gate.cut();
  await assert.rejects(second, isUnavailable);
});

test("a stream that its client cancelled between two messages is no longer open", async () => {
  const gate = new StreamGate();
  const client = new AbortController();
  const stream = gate.guard(numbers(1, 2), client.signal);
  await stream.next();
  client.abort(new Error("gone"));
  assert.equal(gate.openCount, 0);
  await assert.rejects(stream.next(), /gone/);
});
