import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { LeaseServer, type Passage } from "../../test/support/lease-server.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { LeaseElection, type LeaseElectionOptions } from "./lease-election.ts";

const quick: Passage = { thereMs: 1, backMs: 1 };
const cut: Passage = { ...quick, lost: "there" };
const forbidden: Passage = { ...quick, status: 403 };

function setUp(t: TestContext) {
  const clock = new FakeClock();
  const server = new LeaseServer(clock);
  const stops: AbortController[] = [];
  t.after(() => {
    for (const each of stops) each.abort();
  });
  const candidate = (identity: string, options: Partial<LeaseElectionOptions> = {}, passage = quick) => {
    const link = { passage };
    const election = new LeaseElection(
      { namespace: "krane", name: "krane-r", identity, mode: "required", fieldManager: "krane", ...options },
      { api: server.client(() => link.passage), clock, random: createSeededRandom(stops.length) },
    );
    const stopping = new AbortController();
    stops.push(stopping);
    const ended = election.run(stopping.signal).catch(() => undefined);
    const stop = async () => {
      stopping.abort();
      await ended;
    };
    const crash = async () => {
      await stop();
      election.abandon();
    };
    return { election, link, stop, crash };
  };
  return { clock, server, candidate };
}

test("the first candidate leads, and the second one is its standby", async (t) => {
  const { clock, server, candidate } = setUp(t);
  const a = candidate("a");
  await clock.advance(100);
  const b = candidate("b");
  await clock.advance(60_000);
  assert.equal(a.election.status().role, "leader");
  assert.equal(b.election.status().role, "standby");
  assert.equal(b.election.status().holder?.identity, "a");
  assert.equal(server.lease?.spec?.leaseTransitions, 1);
  assert.ok(a.election.leftMs() > 12_000, "the lease is fresh");
  assert.ok(b.election.leftMs() <= 0, "a standby may not write");
});

test("a standby takes over from a leader that crashed, 15 s after it last saw a change, with a higher term", async (t) => {
  const { clock, server, candidate } = setUp(t);
  const a = candidate("a");
  await clock.advance(100);
  const b = candidate("b");
  await clock.advance(10_000);
  await a.crash();
  await clock.advance(12_000);
  assert.equal(b.election.status().term, 0);
  await clock.advance(7_000);
  assert.equal(b.election.status().term, 2);
  assert.equal(server.lease?.spec?.holderIdentity, "b");
});

test("a graceful stop gives the lease up, and the standby takes over at its next look", async (t) => {
  const { clock, server, candidate } = setUp(t);
  const a = candidate("a");
  await clock.advance(100);
  const b = candidate("b");
  await clock.advance(10_000);
  await a.stop();
  assert.ok(a.election.term !== undefined, "it leads until it has given the lease up");
  const released = a.election.release(new AbortController().signal);
  await clock.advance(10);
  await released;
  assert.equal(server.lease?.spec?.holderIdentity, "");
  await clock.advance(3_100);
  assert.equal(b.election.status().term, 2);
});

test("a term counts from when its write was sent, however late the response arrives", async (t) => {
  const { clock, candidate } = setUp(t);
  const a = candidate("a", {}, { thereMs: 1, backMs: 3_000 });
  // One read and one write.
  await clock.advance(6_010);
  assert.ok(a.election.term !== undefined, "it leads");
  const leftMs = a.election.leftMs();
  assert.ok(leftMs > 0 && leftMs < 12_000, `${leftMs} ms left, of 15 s`);
});

test("a leader that cannot renew stops 10 s after its last renewal, before anybody can take over", async (t) => {
  const { clock, candidate } = setUp(t);
  const a = candidate("a");
  await clock.advance(10_000);
  const { term } = a.election;
  a.link.passage = cut;
  await clock.advance(7_000);
  assert.equal(term?.signal.aborted, false);
  await clock.advance(3_000);
  assert.equal(term?.signal.aborted, true);
  assert.equal(a.election.leftMs(), 0);
});

test("a leader that is cut off for a moment keeps its term", async (t) => {
  const { clock, candidate } = setUp(t);
  const a = candidate("a");
  await clock.advance(10_000);
  const { term } = a.election;
  a.link.passage = cut;
  await clock.advance(5_000);
  a.link.passage = quick;
  await clock.advance(20_000);
  assert.equal(term?.signal.aborted, false);
});

test("a leader that reads another holder stops at once", async (t) => {
  const { clock, server, candidate } = setUp(t);
  const a = candidate("a");
  await clock.advance(10_000);
  const { lease } = server;
  assert.ok(lease);
  server.lease = {
    ...lease,
    metadata: { ...lease.metadata, resourceVersion: "900" },
    spec: { ...lease.spec, holderIdentity: "thief", leaseTransitions: 7 },
  };
  await clock.advance(4_200);
  assert.equal(a.election.term, undefined);
  assert.equal(a.election.status().holder?.identity, "thief");
});

test("a response that was lost on its way back costs one more look", async (t) => {
  const { clock, server, candidate } = setUp(t);
  const a = candidate("a");
  a.link.passage = { ...quick, lost: "back" };
  await clock.advance(3_000);
  a.link.passage = quick;
  await clock.advance(10_000);
  assert.equal(a.election.status().role, "leader");
  assert.equal(server.lease?.spec?.holderIdentity, "a");
});

test("a lease that was deleted by hand is not taken while its holder may still write", async (t) => {
  const { clock, server, candidate } = setUp(t);
  const a = candidate("a");
  await clock.advance(100);
  const b = candidate("b");
  await clock.advance(10_000);
  a.link.passage = cut;
  server.delete();
  await clock.advance(14_000);
  assert.equal(b.election.status().term, 0);
  await clock.advance(6_000);
  assert.equal(b.election.status().term, 2, "the term still grows");
});

test("with the wall clock an hour ahead, a standby does not take the lease early", async (t) => {
  const { clock, server } = setUp(t);
  const ahead = {
    nowMs: () => clock.nowMs(),
    wallMs: () => clock.wallMs() + 3_600_000,
    setTimer: (delayMs: number, callback: () => void) => clock.setTimer(delayMs, callback),
  };
  const options = { namespace: "krane", name: "l", mode: "required", fieldManager: "krane" } as const;
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const elections = [clock, ahead].map((own, index) => {
    const api = server.client();
    const random = createSeededRandom(index);
    const election = new LeaseElection({ ...options, identity: `${index}` }, { api, clock: own, random });
    election.run(stopping.signal).catch(() => undefined);
    return election;
  });
  await clock.advance(60_000);
  assert.equal(elections.filter(({ term }) => term !== undefined).length, 1);
  assert.equal(server.lease?.spec?.leaseTransitions, 1);
});

test("after the machine was suspended, nothing is written until the lease is renewed", async (t) => {
  const { clock, server } = setUp(t);
  let suspendedMs = 0;
  const own = {
    nowMs: () => clock.nowMs(),
    wallMs: () => clock.wallMs() + suspendedMs,
    setTimer: (delayMs: number, callback: () => void) => clock.setTimer(delayMs, callback),
  };
  const options = { namespace: "krane", name: "l", mode: "required", identity: "a" } as const;
  const deps = { api: server.client(), clock: own, random: createSeededRandom(1) };
  const election = new LeaseElection({ ...options, fieldManager: "krane" }, deps);
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  election.run(stopping.signal).catch(() => undefined);
  await clock.advance(10_000);
  assert.ok(election.leftMs() > 10_000);
  suspendedMs = 60_000;
  assert.ok(election.leftMs() <= 0);
  await clock.advance(2_100);
  assert.ok(election.leftMs() > 10_000);
});

test("auto leads without a lease where Leases are forbidden, and uses them once they are allowed", async (t) => {
  const { clock, candidate } = setUp(t);
  const a = candidate("a", { mode: "auto" }, forbidden);
  await clock.advance(5_000);
  assert.equal(a.election.status().role, "alone");
  assert.equal(a.election.leftMs(), Number.POSITIVE_INFINITY);
  const { term } = a.election;
  a.link.passage = quick;
  await clock.advance(5_000);
  assert.equal(term?.signal.aborted, true);
  assert.equal(a.election.status().role, "leader");
  a.link.passage = forbidden;
  await clock.advance(12_000);
  assert.equal(a.election.term, undefined, "it does not fall back: another process may hold the lease");
});

test("required does not lead where Leases are forbidden", async (t) => {
  const { clock, candidate } = setUp(t);
  const a = candidate("a", {}, forbidden);
  await clock.advance(60_000);
  assert.equal(a.election.term, undefined);
  assert.equal(a.election.status().lastError, "status 403");
});

test("a candidate that waits for its term is told when it begins, and when it is stopped", async (t) => {
  const { clock, candidate } = setUp(t);
  candidate("a");
  await clock.advance(100);
  const b = candidate("b");
  await clock.advance(100);
  const giveUp = new AbortController();
  const waiting = b.election.whenLeading(giveUp.signal);
  giveUp.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
});
