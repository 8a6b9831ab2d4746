// Resync passes that compare digests: what is asked for then, what counts as absent, and what happens without digests.

import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { deletionLimits } from "../../test/support/deletion-limits.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import type { DesiredResponse } from "../control-plane/connection.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import { formatIncarnation } from "../control-plane/incarnation.ts";
import { ServerHistory } from "../control-plane/server-history.ts";
import { GetDesiredDigestResponseSchema } from "../gen/ctrl/v1/digest_pb.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { DeletionGuard } from "./deletion-guard.ts";
import type { ReadState } from "./desired-message.ts";
import { DesiredStore } from "./desired-store.ts";
import type { Comparison } from "./digest-comparison.ts";
import { createQuestions, Resync } from "./resync.ts";

const never = new AbortController().signal;
const keys = ["a", "b", "c", "d"];
const sealed = { kind: "ours", isOutdated: false, isAdopted: false } as const;

const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: process.version });

type Compare = () => Promise<Comparison | undefined>;

/** Four objects in the cluster, and what a comparison finds; the control plane has never heard of `unknown`. */
function setUp(compare: Compare, unknown: readonly string[] = []) {
  const clock = new FakeClock();
  const store = new DesiredStore<string>(
    clock,
    () => undefined,
    () => true,
  );
  for (const key of keys) store.receive({ key, id: key, version: 1n, want: { kind: "apply", spec: "one" } });
  const asked: string[] = [];
  // Beyond everything, unless a test sets it back.
  const stream = { position: 100n };
  const guard = new DeletionGuard({ ...deletionLimits, minimumAgeMs: 0 }, clock);
  const resync = new Resync<string>(
    { concurrency: 1 },
    {
      controller: "deployments",
      definition: {
        managed: () => keys.map((key) => ({ key, id: key })),
        managedByKey: () => undefined,
        companionKeys: () => [],
      },
      async ask({ id }): Promise<DesiredResponse<ReadState<string>>> {
        asked.push(id);
        if (unknown.includes(id)) return { kind: "not-found" };
        const message = { key: id, id, version: 2n, want: { kind: "apply", spec: "two" } } as const;
        return { kind: "found", state: { kind: "message", message } };
      },
      comparison: { compare },
      store,
      guard,
      clock,
      log: createQuietLog(),
      metrics,
      isInSync: () => true,
      reconnects: () => 0,
      position: () => stream.position,
      replay: () => undefined,
      enqueue: () => undefined,
      forgotten: () => undefined,
    },
  );
  const mayDelete = (key: string) =>
    guard.permit({
      ...{ key, ownership: sealed, uid: "u", authority: "absence" },
      createdAt: "2001-01-01T00:00:00Z",
    }).kind;
  return { resync, store, guard, asked, mayDelete, stream };
}

const found = (
  parts: Partial<Record<keyof Comparison, readonly string[]>>,
  ahead: readonly string[] = [],
): Compare => {
  const { confirmed = [], absent = [], listed = [] } = parts;
  const versions = new Map(listed.map((id) => [id, ahead.includes(id) ? 200n : 2n]));
  return async () => ({ confirmed: new Set(confirmed), absent: new Set(absent), listed: versions });
};

test("nothing is asked for in sync, and everything counts as present", async () => {
  const { resync, asked, guard } = setUp(found({ confirmed: keys }));
  guard.suspect("a", "a");
  const { asked: checked, corrected } = await resync.pass(never);
  assert.deepEqual([asked, checked, corrected], [[], keys.length, 0]);
  assert.equal(guard.isSuspected("a"), false);
});

test("what the stream has not reached yet is left to it while it moves, and asked for once it stands still", async () => {
  const compare = found({ listed: ["new", ...keys] }, ["new", "b"]);
  const { resync, asked, stream } = setUp(async () => {
    if (stream.position < 102n) stream.position += 1n;
    return compare();
  });
  await resync.pass(never);
  assert.deepEqual(asked, ["a", "c", "d"]);
  asked.length = 0;
  await resync.pass(never);
  assert.deepEqual(asked, ["a", "c", "d"]);
  asked.length = 0;
  await resync.pass(never);
  assert.deepEqual(asked, ["a", "b", "c", "d", "new"]);
});

test("only what differs is asked for, and what a list names and is not known here", async () => {
  const { resync, asked, store } = setUp(found({ confirmed: ["a", "c"], listed: ["b", "d", "new"] }));
  await resync.pass(never);
  assert.deepEqual(asked.splice(0), ["b", "d"], "the stream is about to bring the new one");
  await resync.pass(never);
  assert.deepEqual(asked, ["b", "d", "new"]);
  assert.deepEqual([store.get("b")?.version, store.get("new")?.want.kind], [2n, "apply"]);
});

test("a missing object is deleted after three lists without it, while half of the others are confirmed", async () => {
  const { resync, mayDelete } = setUp(found({ confirmed: ["a", "c", "d"], absent: ["b"] }), ["b"]);
  for (const expected of ["blocked", "blocked", "permitted"]) {
    await resync.pass(never);
    assert.equal(mayDelete("b"), expected);
  }
});

test("if most objects are missing from the lists, none is deleted", async () => {
  const { resync, mayDelete } = setUp(found({ confirmed: ["a"], absent: ["b", "c", "d"] }), ["b", "c", "d"]);
  for (let pass = 0; pass < 10; pass++) {
    await resync.pass(never);
    for (const key of keys) assert.equal(mayDelete(key), "blocked");
  }
});

test("a `not_found` without a list that lacks the object is no absence", async () => {
  // Its list names it, or its bucket was not listed at all.
  for (const listed of [["b"], []]) {
    const { resync, guard, asked } = setUp(found({ confirmed: ["a", "c", "d"], listed }), ["b"]);
    for (let pass = 0; pass < 5; pass++) await resync.pass(never);
    assert.equal(asked.length, 5);
    assert.equal(guard.isSuspected("b"), false);
  }
});

test("a list without an object that the control plane still knows is no absence", async () => {
  const { resync, guard } = setUp(found({ confirmed: ["a", "c", "d"], absent: ["b"] }));
  for (let pass = 0; pass < 5; pass++) await resync.pass(never);
  assert.equal(guard.isSuspected("b"), false);
});

test("without digests, and when their calls fail, every object is asked for", async () => {
  const failures: readonly Compare[] = [
    async () => undefined,
    async () => Promise.reject(new ControlPlaneError("internal", "broken")),
    async () => Promise.reject(new ControlPlaneError("deadline_exceeded", "slow")),
  ];
  for (const compare of failures) {
    const { resync, asked } = setUp(compare);
    await resync.pass(never);
    assert.deepEqual(asked, keys);
  }
});

test("if comparing fails, a `not_found` is no absence; if there are no digests, it is one", async () => {
  const failing = async () => Promise.reject(new ControlPlaneError("unavailable", "down"));
  for (const [compare, isSuspected] of [
    [failing, false],
    [async () => undefined, true],
  ] as const) {
    const { resync, guard } = setUp(compare, ["b"]);
    for (let pass = 0; pass < 3; pass++) await resync.pass(never);
    assert.equal(guard.isSuspected("b"), isSuspected);
  }
});

test("a bug in the comparison ends the pass", async () => {
  const { resync, asked } = setUp(async () => Promise.reject(new TypeError("a bug")));
  await assert.rejects(resync.pass(never), /a bug/);
  assert.deepEqual(asked, []);
});

test("the digests of a control plane that names no incarnation are not compared", async () => {
  for (const isNamed of [true, false]) {
    const { store } = setUp(found({}));
    const history = new ServerHistory();
    if (isNamed) history.take(formatIncarnation({ ordinal: 1n, id: "one", parent: "" }), "response");
    const { comparison } = createQuestions(
      {} as never,
      { registries: [] },
      { controller: "cilium", store, log: createQuietLog(), metrics },
      {
        history,
        get: () => assert.fail("nothing is asked for"),
        digest: async () => create(GetDesiredDigestResponseSchema, { sum: new Uint8Array(32) }),
        contents: () => assert.fail("nothing differs"),
      },
    );
    assert.equal((await comparison?.compare([], never)) !== undefined, isNamed);
  }
});
