// Under any script of changes and faults, the cache ends equal to the server, and the transitions that
// listeners get are consistent: nothing is added twice, deleted twice or changed before it was added.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import {
  type Fault,
  fingerprint,
  ScriptedKube,
  type ScriptedObject,
} from "../../test/support/scripted-kube.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { createKubeApi } from "./client.ts";
import { type CacheChange, ObjectCache } from "./object-cache.ts";
import { Reflector } from "./reflector.ts";

const things = { group: "", version: "v1", kind: "Thing", plural: "things", namespaced: true } as const;

const name = fc.constantFrom("a", "b", "c", "d");
const value = fc.nat(3);

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constant<Fault>({ kind: "network" }),
  fc.constant<Fault>({ kind: "silent" }),
  fc.constant<Fault>({ kind: "end-at-once" }),
  fc.constantFrom(400, 403, 404, 410, 429, 500, 504).map((status): Fault => ({ kind: "status", status })),
  fc.constantFrom(410, 500).map((status): Fault => ({ kind: "error-event", status })),
);

type Step = (server: ScriptedKube, clock: FakeClock) => void | Promise<void>;

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(name, value).map(
      ([n, v]): Step =>
        (server) =>
          server.set(n, v),
    ),
  },
  {
    weight: 3,
    arbitrary: name.map(
      (n): Step =>
        (server) =>
          server.delete(n),
    ),
  },
  {
    weight: 2,
    arbitrary: name.map(
      (n): Step =>
        (server) => {
          server.delete(n);
          server.set(n, 0);
        },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(name, name).map(
      ([a, b]): Step =>
        (server) =>
          server.swapped(
            () => server.set(a, 7),
            () => server.delete(b),
          ),
    ),
  },
  {
    weight: 1,
    arbitrary: name.map(
      (n): Step =>
        (server) =>
          server.swapped(
            () => server.delete(n),
            () => server.set(n, 5),
          ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.nat(6).map(
      (n): Step =>
        (server) =>
          server.repeat(n),
    ),
  },
  { weight: 2, arbitrary: fc.constant<Step>((server) => server.bookmark()) },
  { weight: 2, arbitrary: fc.constant<Step>((server) => server.endWatches()) },
  { weight: 2, arbitrary: fc.constant<Step>((server) => server.breakWatches()) },
  { weight: 1, arbitrary: fc.constant<Step>((server) => server.muteWatches()) },
  { weight: 1, arbitrary: fc.constant<Step>((server) => server.compact()) },
  { weight: 1, arbitrary: fc.constant<Step>((server) => server.pushRaw({ type: "NONSENSE" })) },
  {
    weight: 2,
    arbitrary: fault.map(
      (f): Step =>
        (server) =>
          void server.streamFaults.push(f),
    ),
  },
  // A list without a response ends with the transport's deadline, which this transport does not have.
  {
    weight: 1,
    arbitrary: fault
      .filter((f) => f.kind !== "silent")
      .map(
        (f): Step =>
          (server) =>
            void server.sendFaults.push(f),
      ),
  },
  {
    weight: 3,
    arbitrary: fc.integer({ min: 0, max: 40_000 }).map(
      (ms): Step =>
        (_, clock) =>
          clock.advance(ms),
    ),
  },
);

class TransitionLog {
  readonly present = new Map<string, string>();

  record(change: CacheChange<string>): void {
    const before = this.present.get(change.key);
    if (change.kind === "added") assert.equal(before, undefined, `${change.key} added twice`);
    else assert.equal(before, change.before.value, `${change.key} ${change.kind} from something else`);
    if (change.kind === "deleted") this.present.delete(change.key);
    else this.present.set(change.key, change.after.value);
  }
}

test("under any script of faults the cache ends equal to the server and transitions are consistent", async () => {
  const script = fc.record({
    initialEvents: fc.constantFrom("yes" as const, "refused" as const, "ignored" as const),
    pageSize: fc.constantFrom(1, 2, 500),
    seed: fc.nat(),
    steps: fc.array(step, { maxLength: 40 }),
  });
  await fc.assert(
    fc.asyncProperty(script, async ({ initialEvents, pageSize, seed, steps }) => {
      const clock = new FakeClock();
      const server = new ScriptedKube();
      server.supportsInitialEvents = initialEvents;
      server.pageSize = pageSize;
      const cache = new ObjectCache<ScriptedObject, string>({ project: fingerprint });
      const log = new TransitionLog();
      cache.subscribe((change) => log.record(change));
      const stop = new AbortController();
      const deps = { api: createKubeApi(server), clock, random: createSeededRandom(seed) };
      const done = new Reflector({ kind: things, cache }, deps).run(stop.signal);

      for (const act of steps) await act(server, clock);
      server.streamFaults.length = 0;
      server.sendFaults.length = 0;
      server.bookmark();
      for (let passed = 0; passed < 8; passed++) {
        await clock.advance(30_000);
        server.bookmark();
      }
      await clock.settle();

      const cached = Object.fromEntries([...cache.all()].map((entry) => [entry.key, entry.value]).sort());
      assert.deepEqual(cached, server.snapshot());
      assert.deepEqual(Object.fromEntries([...log.present].sort()), cached);
      stop.abort();
      await done;
      assert.equal(clock.timerCount, 0);
      assert.equal(server.watchCount, 0);
    }),
    { numRuns: 500 },
  );
});
