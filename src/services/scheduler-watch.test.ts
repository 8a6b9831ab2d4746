import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type State, StateSchema } from "../gen/krane/v1/scheduler_pb.ts";
import { type StateSource, watchStates } from "./scheduler-watch.ts";

/** Sentinels by name, with so many replicas. */
class FakeSource implements StateSource {
  readonly replicas = new Map<string, number>();
  readonly listeners = new Set<(key: string) => void>();
  private readonly stopping = new AbortController();

  get ending(): AbortSignal {
    return this.stopping.signal;
  }

  keys(): Iterable<string> {
    return [...this.replicas.keys()];
  }

  get(k8sName: string): State | undefined {
    const availableReplicas = this.replicas.get(k8sName);
    if (availableReplicas === undefined) return undefined;
    return create(StateSchema, { state: { case: "sentinel", value: { k8sName, availableReplicas } } });
  }

  subscribe(listener: (key: string) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  set(name: string, replicas: number | undefined): void {
    if (replicas === undefined) this.replicas.delete(name);
    else this.replicas.set(name, replicas);
    for (const listener of this.listeners) listener(name);
  }

  end(): void {
    this.stopping.abort();
  }
}

function text({ state }: State): string {
  return state.case === "sentinel" ? `${state.value.k8sName} ${state.value.availableReplicas}` : "?";
}

function open(source: StateSource) {
  const stopping = new AbortController();
  const states = watchStates([source], stopping.signal);
  const next = async () => {
    const { value, done } = await states.next();
    return done === true ? "end" : text(value);
  };
  return { next, stop: () => stopping.abort() };
}

describe("a watch", () => {
  test("begins with all objects, and continues with changes", async () => {
    const source = new FakeSource();
    source.set("a", 1);
    source.set("b", 2);
    const { next, stop } = open(source);
    assert.deepEqual([await next(), await next()], ["a 1", "b 2"]);
    const change = next();
    source.set("c", 3);
    assert.equal(await change, "c 3");
    stop();
    assert.equal(await next(), "end");
    assert.equal(source.listeners.size, 0);
  });

  test("does not send the same state twice", async () => {
    const source = new FakeSource();
    source.set("a", 1);
    const { next, stop } = open(source);
    assert.equal(await next(), "a 1");
    source.set("a", 1);
    source.set("a", 2);
    source.set("a", 1);
    source.set("b", 1);
    assert.equal(await next(), "b 1");
    stop();
  });

  test("a slow client gets only the current states", async () => {
    const source = new FakeSource();
    const { next, stop } = open(source);
    const first = next();
    source.set("a", 0);
    assert.equal(await first, "a 0");
    for (let count = 1; count <= 10_000; count++) source.set(`s${count % 3}`, count);
    assert.deepEqual([await next(), await next(), await next()], ["s1 10000", "s2 9998", "s0 9999"]);
    source.set("a", 7);
    assert.equal(await next(), "a 7");
    stop();
  });

  test("a deleted object is sent once as empty, and only to clients that have seen it", async () => {
    const source = new FakeSource();
    source.set("a", 3);
    const { next, stop } = open(source);
    assert.equal(await next(), "a 3");
    source.set("a", undefined);
    source.set("b", 1);
    source.set("b", undefined);
    source.set("c", 1);
    assert.deepEqual([await next(), await next()], ["a 0", "c 1"]);
    source.set("a", 3);
    assert.equal(await next(), "a 3");
    stop();
  });

  test("ends with unavailable when the sources end", async () => {
    const source = new FakeSource();
    const { next } = open(source);
    const waiting = next();
    source.end();
    await assert.rejects(
      waiting,
      (error) => error instanceof ConnectError && error.code === Code.Unavailable,
    );
    assert.equal(source.listeners.size, 0);
  });
});
