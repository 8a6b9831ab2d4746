// Several candidates with clocks of their own, on a network that delays and loses requests and responses, and that stall
// and crash at random. However that goes: a process that begins a term does so after every time at which another one
// could still write, and from then on no other one may.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { LeaseServer, type Passage } from "../../test/support/lease-server.ts";
import type { Clock } from "../concurrency/clock.ts";
import { createSeededRandom, type Random, uniform } from "../concurrency/random.ts";
import { LeaseElection } from "./lease-election.ts";
import { defaultLeaseTimes } from "./lease-state.ts";

/** A process: its own clocks, and timers that wait while it is stalled. */
class Candidate {
  readonly identity: string;
  readonly election: LeaseElection;
  isStalled = false;
  /** The latest time at which something that this process sent could still take effect, by the true time. */
  writesUntilMs = 0;
  private readonly world: World;
  private readonly overdue: (() => void)[] = [];
  private readonly stopping = new AbortController();
  private readonly ended: Promise<void>;

  constructor(identity: string, world: World) {
    const { time, server, random } = world;
    const offsetMs = uniform(random, 0, 1e6);
    const skewMs = uniform(random, -1e7, 1e7);
    this.identity = identity;
    this.world = world;
    const clock: Clock = {
      nowMs: () => time.nowMs() + offsetMs,
      wallMs: () => time.wallMs() + skewMs,
      setTimer: (delayMs, callback) =>
        time.setTimer(delayMs, () => {
          if (this.isStalled) this.overdue.push(callback);
          else callback();
        }),
    };
    this.election = new LeaseElection(
      // They look more often than usual, so that they would notice a lease that is free too early.
      {
        namespace: "krane",
        name: "l",
        identity,
        mode: "required",
        fieldManager: "krane",
        times: { ...defaultLeaseTimes, retryMs: 200 },
      },
      {
        api: server.client(() => passage(world)),
        clock,
        random,
        observer: { onTerm: () => world.onTerm(this) },
      },
    );
    this.ended = this.election.run(this.stopping.signal).catch(() => undefined);
  }

  /** What it would send now. */
  write(): void {
    if (this.isStalled) return;
    const { time, latest, violations } = this.world;
    const leftMs = this.election.leftMs();
    if (leftMs <= 0) return;
    this.writesUntilMs = Math.max(this.writesUntilMs, time.nowMs() + leftMs);
    if (latest !== this) violations.push(`${this.identity} may write, although ${latest?.identity} leads`);
  }

  resume(): void {
    this.isStalled = false;
    for (const callback of this.overdue.splice(0)) callback();
  }

  async crash(): Promise<void> {
    this.resume();
    this.stopping.abort();
    await this.ended;
    this.election.abandon();
  }
}

interface World {
  readonly time: FakeClock;
  readonly server: LeaseServer;
  readonly random: Random;
  readonly all: Set<Candidate>;
  /** The share of the requests that are lost. */
  loss: number;
  terms: number;
  /** Whose term began last. */
  latest: Candidate | undefined;
  readonly violations: string[];
  onTerm(candidate: Candidate): void;
}

function passage({ random, loss }: World): Passage {
  const isLost = random.next() < loss;
  // Often just short of the client's timeout, and sometimes long after it.
  const delayMs = () => uniform(random, 0, [20, 20, 4_000, 20_000][Math.floor(random.next() * 4)] ?? 0);
  return {
    thereMs: delayMs(),
    backMs: delayMs(),
    ...(isLost && { lost: random.next() < 0.5 ? ("there" as const) : ("back" as const) }),
  };
}

function createWorld(seed: number): World {
  const time = new FakeClock();
  const all = new Set<Candidate>();
  return {
    time,
    server: new LeaseServer(time),
    random: createSeededRandom(seed),
    all,
    loss: 0.1,
    terms: 0,
    latest: undefined,
    violations: [],
    onTerm(candidate) {
      this.terms += 1;
      this.latest = candidate;
      for (const other of all) {
        if (other === candidate) continue;
        const leftMs = other.writesUntilMs - time.nowMs();
        if (leftMs > 0)
          this.violations.push(`${candidate.identity} leads ${leftMs} ms too early, after ${other.identity}`);
      }
    },
  };
}

async function simulate(seed: number): Promise<World> {
  const world = createWorld(seed);
  const { time, random, all } = world;
  let started = 0;
  const crashed = new Set<Candidate>();
  for (let step = 0; step < 400; step++) {
    const candidates = [...all].filter((each) => !crashed.has(each));
    const one = candidates[Math.floor(random.next() * candidates.length)];
    const dice = random.next();
    if (candidates.length < 2 || (dice < 0.02 && candidates.length < 4))
      all.add(new Candidate(`${seed}-${++started}`, world));
    else if (dice < 0.05 && one) {
      crashed.add(one);
      await one.crash();
    } else if (dice < 0.12 && one) one.isStalled = true;
    else if (dice < 0.25) for (const each of candidates) each.resume();
    else if (dice < 0.28) world.loss = random.next() < 0.5 ? 0 : uniform(random, 0, 0.9);
    for (const each of all) each.write();
    await time.advance(uniform(random, 0, 3_000));
  }
  for (const each of all) await each.crash();
  return world;
}

test("no process leads while another one could still write", async () => {
  let terms = 0;
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (seed) => {
      const world = await simulate(seed);
      terms += world.terms;
      assert.deepEqual(world.violations, []);
    }),
    { numRuns: 20, endOnFailure: true },
  );
  assert.ok(terms > 12, `the leader changed only ${terms} times`);
});
