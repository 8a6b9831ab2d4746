import assert from "node:assert/strict";
import { test } from "node:test";
import { deletionLimits } from "../../test/support/deletion-limits.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import type { DesiredResponse } from "../control-plane/connection.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { DeletionGuard } from "./deletion-guard.ts";
import { DesiredStore } from "./desired-store.ts";
import { Resync } from "./resync.ts";

const never = new AbortController().signal;
const keys = ["a", "b", "c", "d", "e", "f", "g", "h"];

type Answering = (
  id: string,
  signal: AbortSignal,
  knownFingerprint?: string,
) => Promise<DesiredResponse<string>>;

interface ResyncSetup {
  readonly inCluster?: readonly string[];
  readonly inOrder?: readonly string[];
  readonly companions?: readonly string[];
}

/** A resync of eight keys from the stream, with two requests at a time. */
function resyncOf(
  getDesired: Answering,
  { inCluster = [], inOrder = [], companions = [] }: ResyncSetup = {},
) {
  const clock = new FakeClock();
  const store = new DesiredStore<string>(clock);
  for (const key of keys) store.receive({ key, id: key, version: 1n, want: { kind: "apply", spec: "one" } });
  const asked: string[] = [];
  const read: string[] = [];
  const enqueued: string[] = [];
  const resync = new Resync<string>(
    { concurrency: 2 },
    {
      controller: "deployments",
      definition: {
        managed: () => inCluster.map((key) => ({ key, id: key })),
        managedByKey: () => undefined,
        companionKeys: () => companions,
      },
      async ask({ id, knownFingerprint }, signal) {
        asked.push(id);
        const answer = await getDesired(id, signal, knownFingerprint);
        if (answer.kind !== "found") return answer;
        const spec = answer.state;
        read.push(spec);
        const message = { key: spec, id: spec, version: 1n, want: { kind: "apply", spec: "one" } } as const;
        return { ...answer, state: { kind: "message", message } };
      },
      store,
      guard: new DeletionGuard({ ...deletionLimits, minimumAgeMs: 0 }, clock),
      clock,
      log: createQuietLog(),
      metrics: createMetrics({ version: "0", revision: "r", nodeVersion: process.version }),
      isInSync: (key) => inOrder.includes(key),
      position: () => 0n,
      reconnects: () => 0,
      replay: () => undefined,
      enqueue: (key, priority) => void enqueued.push(`${priority} ${key}`),
      forgotten: () => undefined,
    },
  );
  return { resync, store, asked, read, enqueued };
}

const found: Answering = async (id) => ({ kind: "found", state: id });

test("a failed request means nothing, and the others are sent", async () => {
  const { resync, asked } = resyncOf(async (id, signal) => {
    if (id === "b") throw new ControlPlaneError("internal", "GetDesired: internal");
    return found(id, signal);
  });
  const { asked: answered, corrected } = await resync.pass(never);
  assert.deepEqual([answered, corrected], [keys.length - 1, 0]);
  assert.deepEqual(asked, keys);
});

test("an object that was never streamed counts as a correction, except in the first pass", async () => {
  const inCluster = ["x"];
  const { resync } = resyncOf(found, { inCluster });
  assert.equal((await resync.pass(never)).corrected, 0);
  inCluster.push("y");
  assert.equal((await resync.pass(never)).corrected, 1);
});

test("a response with the last fingerprint is not parsed again, and clears the suspicion", async () => {
  const answer: Answering = async (id, _, knownFingerprint) => {
    const fingerprint = `fingerprint of ${id}`;
    return fingerprint === knownFingerprint ? { kind: "same" } : { kind: "found", state: id, fingerprint };
  };
  const { resync, store, read } = resyncOf(answer, { inCluster: keys });
  await resync.pass(never);
  assert.deepEqual(read.splice(0), keys);
  store.receive({ key: "c", id: "c", version: 2n, want: { kind: "apply", spec: "two" } });
  const { asked, corrected } = await resync.pass(never);
  assert.deepEqual([asked, corrected], [keys.length, 0]);
  assert.deepEqual(read, ["c"]);
});

test("keys in sync are skipped, and all others are enqueued once", async () => {
  const answer: Answering = async (id, signal) => {
    if (id === "unanswered") throw new ControlPlaneError("internal", "GetDesired: internal");
    return found(id, signal);
  };
  const { resync, store, enqueued } = resyncOf(answer, {
    inCluster: ["a", "b", "unanswered", "deleting"],
    inOrder: ["b", "c", "d", "e", "f", "g"],
    companions: ["policy"],
  });
  for (const key of ["deleting", "deleted"])
    store.receive({ key, id: key, version: 2n, want: { kind: "delete" } });
  await resync.pass(never);
  assert.deepEqual(enqueued.sort(), [
    "resync a",
    "resync deleting",
    "resync h",
    "resync policy",
    "resync unanswered",
  ]);
});

test("a correction is enqueued before the pass ends, whether or not the key was in sync", async () => {
  const answer: Answering = async (id) => ({ kind: "found", state: id === "a" ? "renamed" : id });
  const { resync, enqueued } = resyncOf(answer, { inOrder: [...keys, "renamed"] });
  await resync.pass(never);
  assert.deepEqual(enqueued, ["fresh renamed"]);
});

test("a pass gives up early if the control plane is down", async () => {
  const { resync, asked } = resyncOf(() => Promise.reject(new ControlPlaneError("unavailable", "down")));
  assert.equal((await resync.pass(never)).asked, 0);
  assert.ok(asked.length < keys.length, `${asked.length}`);
});

test("adjacent objects that the control plane cannot send do not end the pass", async () => {
  const inCluster = Array.from({ length: 60 }, (_, index) => `row-${String(index).padStart(2, "0")}`);
  const isUnreadable = (id: string) => id >= "row-20" && id < "row-40";
  for (const code of ["internal", "unavailable", "deadline_exceeded", "resource_exhausted"] as const) {
    const { resync, asked } = resyncOf(
      async (id, signal) => {
        if (isUnreadable(id)) throw new ControlPlaneError(code, "GetDesired: no");
        return found(id, signal);
      },
      { inCluster },
    );
    const answered = inCluster.length - 20 + keys.length;
    assert.equal((await resync.pass(never)).asked, answered, code);
    assert.equal((await resync.pass(never)).asked, answered, code);
    assert.deepEqual([...new Set(asked)].sort(), [...keys, ...inCluster].sort(), code);
  }
});

test("objects that cannot be sent are asked for last, so they never hide the others", async () => {
  const rows = Array.from({ length: 40 }, (_, index) => `row-${String(index).padStart(2, "0")}`);
  // Both ends of the list, so that the first pass finds nothing that is answered.
  const inCluster = [...rows, "fine"];
  const { resync, store } = resyncOf(
    async (id, signal) => {
      if (id !== "fine") throw new ControlPlaneError("internal", "GetDesired: no");
      return found(id, signal);
    },
    { inCluster },
  );
  let passes = 0;
  while (store.get("fine") === undefined && passes < 10) {
    await resync.pass(never);
    passes += 1;
  }
  assert.ok(store.get("fine") !== undefined, `not asked in ${passes} passes`);
});

test("an internal error ends the pass, and no request outlives it", async () => {
  const bug = new TypeError("undefined is not a function");
  let open = 0;
  const { resync, asked } = resyncOf(async (id, signal) => {
    if (id === "b") throw bug;
    open += 1;
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        open -= 1;
        reject(signal.reason);
      }),
    );
  });
  await assert.rejects(resync.pass(never), bug);
  assert.equal(open, 0);
  assert.deepEqual(asked, ["a", "b"]);
});

test("an abort ends the pass with its own reason", async () => {
  const stop = new AbortController();
  const { resync } = resyncOf(async (_, signal) => {
    stop.abort();
    signal.throwIfAborted();
    return { kind: "not-found" };
  });
  await assert.rejects(resync.pass(stop.signal), stop.signal.reason);
});
