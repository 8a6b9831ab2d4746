// Deletions under control planes that lose rows, answer for another region, are restored and go down, and agents that take over.
// The real resync, store and guard decide; an oracle that knows only what was answered, and when, judges each deletion (K5).
// With KRANE_TEST_LONG=1 a million decisions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { oursSealed } from "../../test/support/test-seal.ts";
import type { Clock } from "../concurrency/clock.ts";
import { createSeededRandom, type Random } from "../concurrency/random.ts";
import type { DesiredResponse } from "../control-plane/connection.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { DeletionGuard } from "./deletion-guard.ts";
import type { ReadState } from "./desired-message.ts";
import { DesiredStore } from "./desired-store.ts";
import { Resync } from "./resync.ts";

const decisionsMin = process.env["KRANE_TEST_LONG"] === "1" ? 1_000_000 : 20_000;
const never = new AbortController().signal;
const startMs = 1_767_225_600_000;
const passesPerWorld = 120;
const options = {
  mode: "confirmed",
  confirmations: 3,
  minimumAgeMs: 300_000,
  budgetObjects: 3,
  budgetFraction: 0.2,
  budgetWindowMs: 600_000,
} as const;

interface LiveObject {
  readonly uid: string;
  readonly createdMs: number;
  /** "unsealed": with krane's marks, but without proof. */
  owner: "krane" | "unsealed" | "foreign";
}

/** What the control plane answered in one pass of the resync. */
interface Pass {
  readonly history: number;
  readonly absent: ReadonlySet<string>;
  /** At least half of the objects were known. */
  readonly isTrustworthy: boolean;
}

interface Counts {
  decisions: number;
  byAbsence: number;
  byOrder: number;
  wrongful: string[];
}

/** How the control plane answers about an object that it has. */
type Mood = "honest" | "empty" | "lossy" | "half" | "down" | "flapping" | "failing";
const moods = ["honest", "honest", "empty", "lossy", "half", "down", "flapping", "failing"] as const;

class AdversarialWorld {
  private readonly random: Random;
  private readonly counts: Counts;
  private nowMs = 0;
  private readonly clock: Clock = {
    nowMs: () => this.nowMs,
    wallMs: () => startMs + this.nowMs,
    setTimer: () => {
      throw new Error("nothing waits here");
    },
  };
  private readonly live = new Map<string, LiveObject>();
  private readonly ordered = new Map<string, bigint>();
  private version = 0n;
  private uids = 0;
  private mood: Mood = "honest";
  private lost = new Set<string>();
  private history = 1;
  private passes: Pass[] = [];
  private absent = new Set<string>();
  private present = 0;
  private deletedMs: number[] = [];
  private ledSinceMs = Number.NEGATIVE_INFINITY;
  private store = new DesiredStore<string>(this.clock);
  private guard = new DeletionGuard(options, this.clock);
  private resync = this.createResync();
  private waiting = new Set<string>();

  constructor(seed: number, counts: Counts) {
    this.random = createSeededRandom(seed);
    this.counts = counts;
    for (let index = 0; index < 20 + this.index(40); index++) this.create();
    for (const key of this.live.keys()) this.send(key);
  }

  async run(): Promise<void> {
    for (let pass = 0; pass < passesPerWorld; pass++) {
      this.disturb();
      const managed = [...this.live.keys()].filter((key) => this.isManaged(key)).length;
      this.absent = new Set();
      this.present = 0;
      await this.resync.pass(never);
      const isTrustworthy = this.present * 2 >= managed;
      this.passes.push({ history: this.history, absent: this.absent, isTrustworthy });
      for (const key of this.waiting) this.decide(key);
      this.waiting.clear();
      this.nowMs += 55_000 + this.random.next() * 10_000;
    }
  }

  private chance(probability: number): boolean {
    return this.random.next() < probability;
  }

  private index(count: number): number {
    return Math.floor(this.random.next() * count);
  }

  private any(): string | undefined {
    return [...this.live.keys()][this.index(this.live.size)];
  }

  private create(): void {
    this.uids += 1;
    const createdMs = this.nowMs - this.random.next() * 600_000;
    const key = `acme/web-${this.index(80)}`;
    if (this.live.has(key)) return;
    this.live.set(key, { uid: `uid-${this.uids}`, createdMs, owner: "krane" });
    this.ordered.delete(key);
  }

  private send(key: string): void {
    this.version += 1n;
    this.store.receive({ key, id: key, version: this.version, want: { kind: "apply", spec: key } });
  }

  private disturb(): void {
    if (this.chance(0.15)) this.mood = moods[this.index(moods.length)] ?? "honest";
    if (this.chance(0.2)) this.lost = new Set([...this.live.keys()].filter(() => this.chance(0.3)));
    if (this.chance(0.05)) this.lost.clear();
    if (this.chance(0.2)) this.create();
    if (this.chance(0.03)) this.startHistory();
    if (this.chance(0.02)) this.takeOver();
    if (this.chance(0.1)) this.order();
    const victim = this.live.get(this.any() ?? "");
    if (victim !== undefined && this.chance(0.04)) victim.owner = this.chance(0.5) ? "unsealed" : "foreign";
    const touched = this.any();
    if (touched !== undefined && this.chance(0.1) && !this.ordered.has(touched)) this.send(touched);
    if (touched !== undefined && this.chance(0.02)) this.recreate(touched);
  }

  private startHistory(): void {
    this.history += 1;
    // It has not ordered what the one before has.
    this.ordered.clear();
    this.guard.startOver();
    this.store.startOver();
  }

  /** Another process leads from now on. */
  private takeOver(): void {
    this.ordered.clear();
    this.store = new DesiredStore<string>(this.clock);
    this.guard = new DeletionGuard(options, this.clock);
    this.guard.takeOver();
    this.ledSinceMs = this.nowMs;
    this.passes = [];
    this.resync = this.createResync();
  }

  private order(): void {
    const key = this.any();
    if (key === undefined) return;
    this.version += 1n;
    this.ordered.set(key, this.version);
    this.store.receive({ key, id: key, version: this.version, want: { kind: "delete" } });
    this.waiting.add(key);
  }

  private recreate(key: string): void {
    this.uids += 1;
    this.live.set(key, { uid: `uid-${this.uids}`, createdMs: this.nowMs, owner: "krane" });
  }

  private createResync(): Resync<string> {
    const managedByKey = (key: string) => {
      const object = this.live.get(key);
      return object?.owner === "krane" ? { key, id: key } : undefined;
    };
    return new Resync<string>(
      { concurrency: 3 },
      {
        controller: "deployments",
        definition: {
          managed: () => [...this.live.keys()].flatMap((key) => managedByKey(key) ?? []),
          managedByKey,
          companionKeys: () => [],
        },
        ask: async ({ id }) => this.answer(id),
        store: this.store,
        guard: this.guard,
        clock: this.clock,
        log: createQuietLog(),
        metrics: createMetrics({ version: "0", revision: "r", nodeVersion: "v0" }),
        isInSync: () => true,
        position: () => 0n,
        reconnects: () => 0,
        replay: () => undefined,
        enqueue: (key) => void this.waiting.add(key),
        forgotten: () => undefined,
      },
    );
  }

  private knows(key: string): boolean {
    if (this.lost.has(key)) return false;
    if (this.mood === "empty") return false;
    if (this.mood === "lossy") return !this.chance(0.2);
    if (this.mood === "half") return key.length % 2 === 0;
    return this.mood !== "flapping" || this.passes.length % 3 !== 0;
  }

  private answer(key: string): DesiredResponse<ReadState<string>> {
    const fails = this.mood === "down" || (this.mood === "failing" && this.chance(0.3));
    if (fails) throw new ControlPlaneError("unavailable", "GetDesired: unavailable");
    if (!this.knows(key)) {
      this.absent.add(key);
      return { kind: "not-found" };
    }
    if (this.isManaged(key)) this.present += 1;
    const message = { key, id: key, version: this.version, want: { kind: "apply", spec: key } } as const;
    return { kind: "found", state: { kind: "message", message } };
  }

  /** It is krane's, and the control plane should know it. */
  private isManaged(key: string): boolean {
    return this.live.get(key)?.owner === "krane" && !this.ordered.has(key);
  }

  /** As reconcile.ts asks the guard. */
  private decide(key: string): void {
    const object = this.live.get(key);
    if (object === undefined) return;
    const isOrdered = this.store.get(key)?.want.kind === "delete";
    if (!isOrdered && !this.guard.isSuspected(key)) return;
    const authority = this.guard.isSuspected(key) ? "absence" : "order";
    const { uid, owner, createdMs } = object;
    const ownership = owner === "krane" ? oursSealed : { kind: owner, reason: owner };
    const createdAt = new Date(startMs + createdMs).toISOString();
    const permission = this.guard.permit({ key, ownership, uid, createdAt, authority });
    this.counts.decisions += 1;
    if (permission.kind !== "permitted") return;
    const objection =
      authority === "order" ? this.orderObjection(key, object) : this.absenceObjection(key, object);
    if (objection !== undefined) this.counts.wrongful.push(`${key} at ${this.nowMs}: ${objection}`);
    if (authority === "absence") this.counts.byAbsence += 1;
    else this.counts.byOrder += 1;
    this.live.delete(key);
    this.store.remove(key);
    this.guard.clear(key);
  }

  private orderObjection(key: string, { owner }: LiveObject): string | undefined {
    if (owner === "foreign") return "it is not krane's";
    return this.ordered.has(key) ? undefined : "nobody ordered it";
  }

  private absenceObjection(key: string, { createdMs, owner }: LiveObject): string | undefined {
    const last = this.passes.slice(-options.confirmations);
    if (last.length < options.confirmations) return "too few passes";
    if (last.some(({ absent }) => !absent.has(key))) return "the control plane knew it";
    if (last.some(({ history }) => history !== this.history)) return "an older history did not know it";
    if (last.some(({ isTrustworthy }) => !isTrustworthy)) return "the control plane knew too few objects";
    if (owner !== "krane") return "nothing proves that it is krane's";
    if (this.nowMs - createdMs < options.minimumAgeMs) return "it is too young";
    if (this.nowMs - this.ledSinceMs < options.budgetWindowMs)
      return "the agent leads only since a short time";
    this.deletedMs = this.deletedMs.filter((atMs) => atMs > this.nowMs - options.budgetWindowMs);
    const budget = Math.max(
      options.budgetObjects,
      Math.floor((this.live.size + this.deletedMs.length) * 0.2),
    );
    this.deletedMs.push(this.nowMs);
    return this.deletedMs.length > budget ? `${this.deletedMs.length} in ten minutes` : undefined;
  }
}

test(`no deletion is wrongful among ${decisionsMin} decisions under adversarial control planes`, async () => {
  const counts: Counts = { decisions: 0, byAbsence: 0, byOrder: 0, wrongful: [] };
  for (let seed = 1; counts.decisions < decisionsMin; seed++) {
    await new AdversarialWorld(seed, counts).run();
    assert.deepEqual(counts.wrongful, [], `seed ${seed}`);
  }
  assert.ok(counts.byAbsence > decisionsMin / 1_000, `${counts.byAbsence} deletions for absence`);
  assert.ok(counts.byOrder > decisionsMin / 1_000, `${counts.byOrder} ordered deletions`);
});
