import assert from "node:assert/strict";
import { test } from "node:test";
import { deletionLimits } from "../../test/support/deletion-limits.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { formatIncarnation } from "../control-plane/incarnation.ts";
import { ServerHistory } from "../control-plane/server-history.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { DeletionGuard } from "./deletion-guard.ts";
import { DesiredStore } from "./desired-store.ts";
import { comparisonWithinMs, followIncarnations, resetCursor } from "./incarnation.ts";
import { VersionCursor } from "./version-cursor.ts";

const ours = { kind: "ours", isOutdated: false, isAdopted: false } as const;
const deletion = { ...deletionLimits, minimumAgeMs: 0 };

function setUp() {
  const clock = new FakeClock();
  const history = new ServerHistory();
  const store = new DesiredStore<string>(clock, undefined, () => history.isNamed);
  const cursor = new VersionCursor();
  const guard = new DeletionGuard(deletion, clock);
  const forgotten: string[] = [];
  const enqueued: string[] = [];
  const replays: number[] = [];
  const resent: number[] = [];
  followIncarnations(history, {
    controller: "deployments",
    ...{ store, cursor, guard },
    reporter: { resendAll: (withinMs) => resent.push(withinMs) },
    random: createSeededRandom(1),
    log: createQuietLog(),
    metrics: createMetrics({ version: "0", revision: "r", nodeVersion: "v0" }),
    replay: (afterMs) => replays.push(afterMs),
    forgotten: (key) => forgotten.push(key),
    enqueue: (key) => enqueued.push(key),
  });
  const turnTo = (ordinal: bigint, source: "stream" | "response" = "response") =>
    history.take(formatIncarnation({ ordinal, id: `x-${ordinal}`, parent: "" }), source);
  turnTo(1n);
  return { clock, history, store, cursor, guard, forgotten, enqueued, replays, resent, turnTo };
}

function apply(key: string, version: bigint, spec: string) {
  return { key, id: `id-${key}`, version, want: { kind: "apply", spec } } as const;
}

function remove(key: string, version: bigint) {
  return { key, id: undefined, version, want: { kind: "delete" } } as const;
}

test("in the same incarnation lower versions change nothing, however often they come", () => {
  const { store } = setUp();
  store.receive(apply("a", 9n, "nine"));
  store.receive(remove("b", 8n));
  for (let pass = 0; pass < 100; pass++) {
    assert.equal(store.answer(store.ask("a"), apply("a", 5n, "five")), "stale");
    assert.equal(store.answer(store.ask("b"), apply("b", 5n, "five")), "stale");
    assert.equal(store.receive(apply("b", 5n, "five")), "stale");
    assert.deepEqual(store.reached(20n), []);
    assert.equal(store.contradictions("b"), 0);
  }
  assert.deepEqual([store.get("a")?.version, store.get("b")?.want.kind], [9n, "delete"]);
});

test("a newer incarnation voids versions and deletes, and keeps what was wanted", () => {
  const { store, cursor, forgotten, enqueued, replays, resent, turnTo } = setUp();
  store.receive(apply("a", 9n, "nine"));
  store.receive(remove("b", 8n));
  cursor.receive(9n, "a");
  const taken = store.get("a");
  turnTo(2n);
  assert.deepEqual([cursor.version, cursor.newest, cursor.unsettledCount], [0n, 0n, 0]);
  assert.deepEqual([store.get("a")?.want, store.get("a")?.version], [{ kind: "apply", spec: "nine" }, 0n]);
  assert.equal(store.get("b"), undefined);
  assert.deepEqual([forgotten, enqueued], [["b"], ["b"]]);
  // A worker that still holds the old entry must not settle its number in the new incarnation.
  assert.ok(taken && !store.isNumbered(taken));
  assert.equal(store.receive(apply("a", 2n, "two")), "changed");
  assert.equal(store.receive(apply("b", 1n, "one")), "changed");
  assert.deepEqual(resent, [comparisonWithinMs]);
  assert.equal(replays.length, 1);
  assert.ok(replays.every((afterMs) => afterMs >= 0 && afterMs <= comparisonWithinMs));
});

test("a stream that names a newer incarnation starts at 0 and needs no replay", () => {
  const { replays, turnTo } = setUp();
  turnTo(2n, "stream");
  assert.deepEqual(replays, []);
});

test("an order stays in force in a newer incarnation, unless that wants something new", () => {
  const { store, turnTo } = setUp();
  store.receive(apply("a", 9n, "control plane"));
  store.order(apply("a", 0n, "order"));
  store.receive(apply("b", 8n, "control plane"));
  store.order(apply("b", 0n, "order"));
  turnTo(2n);
  assert.equal(store.receive(apply("a", 3n, "control plane")), "unchanged");
  assert.equal(store.receive(apply("b", 2n, "changed since")), "changed");
  assert.deepEqual(store.get("a")?.want, { kind: "apply", spec: "order" });
  assert.deepEqual(store.get("b")?.want, { kind: "apply", spec: "changed since" });
  assert.equal(store.receive(apply("a", 4n, "newer")), "changed");
});

test("absences are counted from the start, and a held-back deletion stays held back", () => {
  const { guard, turnTo } = setUp();
  const proof = {
    key: "held",
    ownership: ours,
    uid: "u",
    createdAt: "2020-01-01T00:00:00Z",
    authority: "absence",
  } as const;
  const pass = (...absent: readonly string[]) => {
    for (const key of absent) guard.suspect(key, `id-${key}`);
    guard.endPass({ managed: 10, present: 8 });
  };
  pass("held");
  pass("held", "young");
  pass("held", "young");
  assert.equal(guard.isConfirmed("held"), true);
  assert.equal(guard.release("held"), true);
  turnTo(2n);
  assert.deepEqual(
    guard.blocked().map(({ key }) => key),
    ["held"],
  );
  assert.equal(guard.isSuspected("young"), false);
  pass("held", "young");
  pass("held", "young");
  const permission = guard.permit(proof);
  assert.equal(permission.kind, "blocked");
  assert.match(permission.kind === "blocked" ? permission.reason : "", /new incarnation/);
  assert.equal(guard.isSuspected("young"), false);
  pass("held", "young");
  assert.equal(guard.permit(proof).kind, "permitted");
});

test("an absence that the old incarnation told in the same pass does not count", () => {
  const { guard, turnTo } = setUp();
  const pass = () => {
    guard.suspect("a", "id-a");
    guard.endPass({ managed: 10, present: 8 });
  };
  pass();
  pass();
  pass();
  guard.suspect("a", "id-a");
  turnTo(2n);
  guard.endPass({ managed: 10, present: 8 });
  pass();
  pass();
  assert.equal(guard.isConfirmed("a"), false);
  pass();
  assert.equal(guard.isConfirmed("a"), true);
});

test("out_of_range restarts the numbering only of a control plane that names no incarnation", () => {
  const { history, store, cursor } = setUp();
  store.receive(apply("a", 9n, "nine"));
  const status = {
    state: "waiting",
    sinceMs: 0,
    reconnects: 1,
    lastError: { code: "out_of_range", message: "", atMs: 0 },
  } as const;
  resetCursor(history, status, { cursor, store });
  assert.equal(store.get("a")?.version, 9n);
  history.take(null, "response");
  resetCursor(history, status, { cursor, store });
  assert.equal(store.get("a")?.version, 0n);
});
