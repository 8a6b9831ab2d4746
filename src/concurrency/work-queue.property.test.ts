// The queue against a slow and simple model: arrays and scans, no heap, no links, no
// timer. After every step both must have started the same keys in the same order, and
// have the same counts.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { type WorkOutcome, type WorkPriority, WorkQueue } from "./work-queue.ts";

const keys = ["a", "b", "c", "d", "e"] as const;
const freshBurst = 2;
const backoff = { initialMs: 8, maxMs: 40, jitter: "equal" } as const;
const backoffMs = (failures: number) => Math.min(40, 8 * 2 ** failures);

interface Wish {
  readonly key: string;
  readonly dueMs: number;
  readonly priority: WorkPriority;
}

class QueueModel {
  nowMs = 0;
  readonly started: string[] = [];
  inFlight: { readonly key: string; readonly priority: WorkPriority; wishes: Wish[] }[] = [];
  waiting: Wish[] = [];
  delayed: Wish[] = [];
  private readonly failures = new Map<string, number>();
  private streak = 0;
  private readonly workers: number;

  constructor(workers: number) {
    this.workers = workers;
  }

  want(wish: Wish): void {
    const held = this.inFlight.find(({ key }) => key === wish.key);
    const waits = this.waiting.find(({ key }) => key === wish.key);
    const delayed = this.delayed.find(({ key }) => key === wish.key);
    if (held) {
      held.wishes.push(wish);
    } else if (waits) {
      if (waits.priority === "fresh" || wish.priority === "resync" || wish.dueMs > this.nowMs) return;
      this.waiting = [...this.waiting.filter((other) => other !== waits), wish];
    } else if (delayed) {
      if (wish.priority === "resync" && (this.failures.get(wish.key) ?? 0) > 0) return;
      this.delayed = this.delayed.filter((other) => other !== delayed);
      this.place(fold([delayed, wish]));
    } else {
      this.place(wish);
    }
  }

  forget(key: string): void {
    this.failures.delete(key);
  }

  finish(index: number, outcome: WorkOutcome): void {
    const [work] = this.inFlight.splice(index, 1);
    if (!work) return;
    const { key, priority } = work;
    let wishes = work.wishes;
    if (outcome.kind === "retry") {
      const failures = this.failures.get(key) ?? 0;
      this.failures.set(key, failures + 1);
      const dueMs = this.nowMs + backoffMs(failures);
      if (wishes.every((wish) => wish.priority === "resync")) wishes = [];
      wishes = [...wishes, { key, dueMs, priority }];
    } else {
      this.failures.delete(key);
      if (outcome.kind === "again")
        wishes = [...wishes, { key, dueMs: this.nowMs + outcome.afterMs, priority }];
    }
    if (wishes.length > 0) this.place(fold(wishes));
  }

  advance(byMs: number): void {
    for (const targetMs = this.nowMs + byMs; this.nowMs < targetMs; this.start()) {
      this.nowMs += 1;
      const due = this.delayed.filter(({ dueMs }) => dueMs <= this.nowMs);
      this.delayed = this.delayed.filter(({ dueMs }) => dueMs > this.nowMs);
      this.waiting.push(...due);
    }
  }

  start(): void {
    while (this.inFlight.length < this.workers && this.waiting.length > 0) {
      const fresh = this.waiting.find(({ priority }) => priority === "fresh");
      const resync = this.waiting.find(({ priority }) => priority === "resync");
      const wish = resync && this.streak >= freshBurst ? resync : (fresh ?? resync);
      if (!wish) return;
      this.streak = resync && wish === fresh ? this.streak + 1 : 0;
      this.waiting = this.waiting.filter((other) => other !== wish);
      this.inFlight.push({ key: wish.key, priority: wish.priority, wishes: [] });
      this.started.push(wish.key);
    }
  }

  private place(wish: Wish): void {
    (wish.dueMs <= this.nowMs ? this.waiting : this.delayed).push(wish);
  }
}

function fold(wishes: readonly Wish[]): Wish {
  return {
    key: wishes[0]?.key ?? "",
    dueMs: Math.min(...wishes.map(({ dueMs }) => dueMs)),
    priority: wishes.some(({ priority }) => priority === "fresh") ? "fresh" : "resync",
  };
}

/** The real queue, with handlers that wait to be finished, checked against the invariants of any queue. */
class QueueUnderTest {
  readonly clock = new FakeClock();
  readonly started: string[] = [];
  readonly inFlight: { readonly key: string; readonly end: (outcome: WorkOutcome) => void }[] = [];
  readonly startedAfterLastAdd = new Map<string, boolean>();
  readonly queue = new WorkQueue(
    { backoff, freshBurst },
    {
      clock: this.clock,
      random: { next: () => 1 },
      onHandlerError: (_, error) => assert.fail(String(error)),
    },
  );
  readonly running: Promise<void>;
  isClosed = false;

  constructor(workers: number) {
    this.running = this.queue.run(
      workers,
      (key) => {
        assert.ok(!this.isClosed, "started after close");
        assert.ok(!this.inFlight.some((work) => work.key === key), `two workers on ${key}`);
        assert.ok(this.inFlight.length < workers, "more handlers than workers");
        this.started.push(key);
        this.startedAfterLastAdd.set(key, true);
        return new Promise((end) => this.inFlight.push({ key, end }));
      },
      new AbortController().signal,
    );
  }

  add(key: string, priority: WorkPriority): void {
    if (!this.isClosed) this.startedAfterLastAdd.set(key, false);
    this.queue.add(key, priority);
  }

  finish(index: number, outcome: WorkOutcome): void {
    const [work] = this.inFlight.splice(index, 1);
    work?.end(outcome);
  }

  assertEquals(model: QueueModel): void {
    const { waiting, delayed, inFlight } = this.queue.counts;
    assert.deepEqual(this.started, model.started);
    assert.deepEqual(
      { ...waiting, delayed, inFlight },
      {
        fresh: model.waiting.filter(({ priority }) => priority === "fresh").length,
        resync: model.waiting.filter(({ priority }) => priority === "resync").length,
        delayed: model.delayed.length,
        inFlight: model.inFlight.length,
      },
    );
    assert.ok(waiting.fresh + waiting.resync + delayed + inFlight <= keys.length, "a key is held twice");
    assert.equal(this.clock.timerCount, delayed > 0 ? 1 : 0);
  }
}

const anyKey = fc.constantFrom(...keys);
const anyPriority = fc.constantFrom<WorkPriority>("fresh", "resync");
const anyDelayMs = fc.integer({ min: 0, max: 30 });
const anyOutcome: fc.Arbitrary<WorkOutcome> = fc.oneof(
  fc.constant({ kind: "done" } as const),
  fc.constant({ kind: "retry" } as const),
  fc.record({ kind: fc.constant("again" as const), afterMs: anyDelayMs }),
);

const anyAdd = fc.record({ kind: fc.constant("add" as const), key: anyKey, priority: anyPriority });
const anyStep = fc.oneof(
  // Several at once, so that the order of keys that become ready together is checked too.
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("adds" as const), adds: fc.array(anyAdd, { maxLength: 4 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("addAfter" as const),
      key: anyKey,
      delayMs: anyDelayMs,
      priority: anyPriority,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("finish" as const),
      index: fc.nat({ max: 2 }),
      outcome: anyOutcome,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("advance" as const), byMs: anyDelayMs }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), key: anyKey }) },
);
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

async function take(step: Step, real: QueueUnderTest, model: QueueModel): Promise<void> {
  switch (step.kind) {
    case "adds":
      for (const { key, priority } of step.adds) {
        real.add(key, priority);
        model.want({ key, priority, dueMs: model.nowMs });
      }
      break;
    case "addAfter":
      real.queue.addAfter(step.key, step.delayMs, step.priority);
      model.want({ key: step.key, priority: step.priority, dueMs: model.nowMs + step.delayMs });
      break;
    case "finish":
      real.finish(step.index, step.outcome);
      model.finish(step.index, step.outcome);
      break;
    case "forget":
      real.queue.forget(step.key);
      model.forget(step.key);
      break;
    case "advance":
      await real.clock.advance(step.byMs);
      model.advance(step.byMs);
      break;
  }
  model.start();
  await real.clock.settle();
}

async function drain(real: QueueUnderTest): Promise<void> {
  for (let round = 0; round < 100 && (real.inFlight.length > 0 || real.queue.counts.delayed > 0); round++) {
    real.finish(0, { kind: "done" });
    await real.clock.advance(10);
  }
}

const anySteps = fc.array(anyStep, { minLength: 5, maxLength: 40, size: "max" });

test("the queue starts the keys that its model starts, and every add is followed by a handling", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), anySteps, async (workers, steps) => {
      const real = new QueueUnderTest(workers);
      const model = new QueueModel(workers);
      for (const step of steps) {
        await take(step, real, model);
        real.assertEquals(model);
      }
      await drain(real);
      for (const [key, isHandled] of real.startedAfterLastAdd) assert.ok(isHandled, `${key} was lost`);
      const { waiting, delayed, inFlight } = real.queue.counts;
      assert.deepEqual({ ...waiting, delayed, inFlight }, { fresh: 0, resync: 0, delayed: 0, inFlight: 0 });
      real.queue.close();
      await real.running;
    }),
    { numRuns: 400 },
  );
});

test("after close nothing starts, no timer is left, and the run ends with the last handler", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), anySteps, anySteps, async (workers, before, after) => {
      const real = new QueueUnderTest(workers);
      const unused = new QueueModel(workers);
      for (const step of before) await take(step, real, unused);
      real.isClosed = true;
      real.queue.close();
      for (const step of after) await take(step, real, unused);
      assert.equal(real.clock.timerCount, 0);
      for (const work of real.inFlight) work.end({ kind: "retry" });
      await real.running;
      assert.equal(real.clock.timerCount, 0);
      assert.equal(real.queue.counts.inFlight, 0);
    }),
    { numRuns: 100 },
  );
});
