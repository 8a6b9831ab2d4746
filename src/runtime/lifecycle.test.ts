import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { LifecycleStack, type LifecycleStep, runLifecycle, runSteps, type Stoppable } from "./lifecycle.ts";
import { RuntimeError } from "./runtime-error.ts";

const options = { stopTimeoutMs: 30_000, forceTimeoutMs: 2_000 };

/** Steps that record their events in one list. */
function createRecorder() {
  const events: string[] = [];
  const step = (name: string, stop?: Stoppable["stop"], failed?: Promise<never>): LifecycleStep => ({
    name,
    async start() {
      events.push(`start ${name}`);
      return {
        ...(failed && { failed }),
        async stop(signal) {
          events.push(`stop ${name}`);
          await stop?.(signal);
        },
      };
    },
  });
  return { events, step };
}

const never = () => new Promise<never>(() => undefined);

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail("resolved, but should have rejected");
}

function messages(error: unknown): string[] {
  assert.ok(error instanceof AggregateError, String(error));
  return error.errors.map((cause) => cause.message);
}

describe("running steps", () => {
  test("an abort stops the started steps in reverse order, without an error", async () => {
    const { events, step } = createRecorder();
    const clock = new FakeClock();
    const stop = new AbortController();
    const running = runSteps([step("a"), step("b"), step("c")], options, { clock }, stop.signal);
    await clock.settle();
    assert.deepEqual(events, ["start a", "start b", "start c"]);
    stop.abort(new Error("SIGTERM"));
    await running;
    assert.deepEqual(events.slice(3), ["stop c", "stop b", "stop a"]);
    assert.equal(clock.timerCount, 0);
  });

  test("a step that returns nothing has nothing to stop", async () => {
    const { events, step } = createRecorder();
    const stop = new AbortController();
    const steps: LifecycleStep[] = [step("a"), { name: "check", start: async () => undefined }];
    const running = runSteps(steps, options, { clock: new FakeClock() }, stop.signal);
    stop.abort();
    await running;
    assert.deepEqual(events, ["start a", "stop a"]);
  });

  test("a failing step stops the steps before it and rejects with its own error", async () => {
    const { events, step } = createRecorder();
    const refused = new Error("refused");
    const broken: LifecycleStep = { name: "broken", start: () => Promise.reject(refused) };
    const clock = new FakeClock();
    const running = runSteps([step("a"), step("b"), broken, step("c")], options, { clock }, neverAborted());
    assert.equal(await rejection(running), refused);
    assert.deepEqual(events, ["start a", "start b", "stop b", "stop a"]);
    assert.equal(clock.timerCount, 0);
  });

  test("when stopping fails too, the error of the start comes first", async () => {
    const { step } = createRecorder();
    const stuck = step("a", () => Promise.reject(new Error("disk full")));
    const broken: LifecycleStep = { name: "broken", start: () => Promise.reject(new Error("refused")) };
    const running = runSteps([stuck, broken], options, { clock: new FakeClock() }, neverAborted());
    assert.deepEqual(messages(await rejection(running)), ["refused", "stopping a: disk full"]);
  });

  test("the steps of a stage start together, and the next stage starts after all of them", async () => {
    const { events, step } = createRecorder();
    const clock = new FakeClock();
    const stop = new AbortController();
    let letGo: () => void = () => assert.fail("not yet");
    const slow: LifecycleStep = {
      ...step("slow"),
      start: (signal) =>
        new Promise((resolve) => {
          letGo = () => resolve(step("slow").start(signal));
        }),
    };
    const running = runSteps([[slow, step("quick")], step("next")], options, { clock }, stop.signal);
    await clock.settle();
    assert.deepEqual(events, ["start quick"]);
    letGo();
    await clock.settle();
    assert.deepEqual(events, ["start quick", "start slow", "start next"]);
    stop.abort();
    await running;
    assert.deepEqual(events.slice(3), ["stop next", "stop quick", "stop slow"]);
  });

  test("when a step of a stage fails, the others are aborted or stopped, and its error is thrown", async () => {
    const { events, step } = createRecorder();
    const refused = new Error("refused");
    const broken: LifecycleStep = { name: "broken", start: () => Promise.reject(refused) };
    const hanging: LifecycleStep = {
      name: "hanging",
      start: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            events.push("give up hanging");
            reject(signal.reason);
          });
        }),
    };
    const clock = new FakeClock();
    const stages = [step("a"), [step("b"), hanging, broken], step("c")];
    assert.equal(await rejection(runSteps(stages, options, { clock }, neverAborted())), refused);
    assert.deepEqual(events, ["start a", "start b", "give up hanging", "stop b", "stop a"]);
    assert.equal(clock.timerCount, 0);
  });

  test("an abort during a start ends it, stops the earlier steps, and is not an error", async () => {
    const { events, step } = createRecorder();
    const stop = new AbortController();
    const slow: LifecycleStep = {
      name: "slow",
      start: (signal) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    };
    const clock = new FakeClock();
    const running = runSteps([step("a"), slow, step("b")], options, { clock }, stop.signal);
    await clock.settle();
    stop.abort();
    await running;
    assert.deepEqual(events, ["start a", "stop a"]);
  });

  test("an abort before the start starts nothing", async () => {
    const { events, step } = createRecorder();
    await runSteps([step("a")], options, { clock: new FakeClock() }, AbortSignal.abort());
    assert.deepEqual(events, []);
  });

  test("the first failing task stops everything and is the first of the causes", async () => {
    const { events, step } = createRecorder();
    let fail: (error: Error) => void = () => assert.fail("not yet");
    const failed = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const steps = [
      step("a", () => Promise.reject(new Error("disk full"))),
      step("server", undefined, failed),
      step("b"),
    ];
    const clock = new FakeClock();
    const running = runSteps(steps, options, { clock }, neverAborted());
    await clock.settle();
    fail(new Error("socket lost"));
    const error = await rejection(running);
    assert.deepEqual(messages(error), ["server: socket lost", "stopping a: disk full"]);
    assert.deepEqual(events.slice(3), ["stop b", "stop server", "stop a"]);
  });

  test("a task that fails while a later step is starting ends that start", async () => {
    const { events, step } = createRecorder();
    const slow: LifecycleStep = {
      name: "slow",
      start: (signal) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    };
    const steps = [step("server", undefined, Promise.reject(new Error("socket lost"))), slow];
    const running = runSteps(steps, options, { clock: new FakeClock() }, neverAborted());
    assert.deepEqual(messages(await rejection(running)), ["server: socket lost"]);
    assert.deepEqual(events, ["start server", "stop server"]);
  });
});

describe("opening one part after the other", () => {
  test("later parts can use an earlier one, which is stopped after them", async () => {
    const { events, step } = createRecorder();
    const clock = new FakeClock();
    const stop = new AbortController();
    const begin = async (stack: LifecycleStack, signal: AbortSignal) => {
      const close = async () => void events.push("close 8070");
      const port = await stack.open(
        "port",
        async () => 8070,
        () => ({ stop: close }),
        signal,
      );
      await stack.start(step(`user of ${port}`), signal);
    };
    const running = runLifecycle(begin, options, { clock }, stop.signal);
    await clock.settle();
    stop.abort();
    await running;
    assert.deepEqual(events, ["start user of 8070", "stop user of 8070", "close 8070"]);
    assert.equal(clock.timerCount, 0);
  });

  test("an error between two parts stops the earlier ones and is thrown", async () => {
    const { events, step } = createRecorder();
    const refused = new Error("refused");
    const begin = async (stack: LifecycleStack, signal: AbortSignal) => {
      await stack.start(step("a"), signal);
      throw refused;
    };
    const running = runLifecycle(begin, options, { clock: new FakeClock() }, neverAborted());
    assert.equal(await rejection(running), refused);
    assert.deepEqual(events, ["start a", "stop a"]);
  });

  test("a part that opens after the abort is stopped, and nothing after it starts", async () => {
    const { events, step } = createRecorder();
    const clock = new FakeClock();
    const stop = new AbortController();
    const begin = async (stack: LifecycleStack, signal: AbortSignal) => {
      const open = async () => stop.abort();
      const close = async () => void events.push("close deaf");
      await stack.open("deaf", open, () => ({ stop: close }), signal);
      await stack.start(step("next"), signal);
    };
    await runLifecycle(begin, options, { clock }, stop.signal);
    assert.deepEqual(events, ["close deaf"]);
  });
});

describe("stopping", () => {
  async function startedStack(clock: FakeClock, steps: readonly LifecycleStep[]): Promise<LifecycleStack> {
    const stack = new LifecycleStack(options, { clock });
    for (const step of steps) await stack.start(step, neverAborted());
    return stack;
  }

  test("every clean-up runs even if others fail, and the error has every cause", async () => {
    const { events, step } = createRecorder();
    const throwing: LifecycleStep = {
      name: "b",
      start: async () => ({
        stop() {
          events.push("stop b");
          throw new Error("thrown before the first await");
        },
      }),
    };
    const steps = [step("a", () => Promise.reject(new Error("disk full"))), throwing, step("c")];
    const stack = await startedStack(new FakeClock(), steps);
    const error = await rejection(stack.stop());
    assert.deepEqual(messages(error), ["stopping b: thrown before the first await", "stopping a: disk full"]);
    assert.deepEqual(events.slice(2), ["stop c", "stop b", "stop a"]);
  });

  test("the error names a hanging clean-up, and the others still run in order", async () => {
    const { events, step } = createRecorder();
    const clock = new FakeClock();
    const stack = await startedStack(clock, [step("a"), step("b", never), step("c")]);
    const stopped = rejection(stack.stop());
    await clock.advance(27_999);
    assert.deepEqual(events.slice(3), ["stop c", "stop b"]);
    await clock.advance(1);
    assert.deepEqual(events.slice(3), ["stop c", "stop b", "stop a"]);
    await clock.advance(2_000);
    const error = await stopped;
    assert.deepEqual(messages(error), ["stopping b: not finished after 30 s"]);
    assert.ok(error instanceof AggregateError && error.errors[0] instanceof RuntimeError);
    assert.equal(error.errors[0].code, "stop_timed_out");
    assert.equal(clock.timerCount, 0);
  });

  test("slow clean-ups share one time limit, and can still finish when told to hurry", async () => {
    const { events, step } = createRecorder();
    const clock = new FakeClock();
    const untilHurried: Stoppable["stop"] = (signal) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
    const stack = await startedStack(clock, [step("a"), step("b", untilHurried)]);
    const stopped = stack.stop();
    await clock.advance(28_000);
    await stopped;
    assert.deepEqual(events.slice(2), ["stop b", "stop a"]);
    assert.equal(clock.timerCount, 0);
  });

  test("stopping twice runs each clean-up once, and both callers get the same result", async () => {
    const { events, step } = createRecorder();
    const stack = await startedStack(new FakeClock(), [
      step("a", () => Promise.reject(new Error("disk full"))),
    ]);
    const [first, second] = await Promise.all([rejection(stack.stop()), rejection(stack.stop())]);
    assert.equal(first, second);
    assert.deepEqual(events, ["start a", "stop a"]);
  });
});

function neverAborted(): AbortSignal {
  return new AbortController().signal;
}
