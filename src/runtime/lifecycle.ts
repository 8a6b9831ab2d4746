// Starts the parts of a process in order and stops them in reverse, whatever goes wrong on the way. The agent, the
// server, the vault server and `krane dev` all run on it.
//
// - A start that fails stops everything that had started, then its error is thrown.
// - Steps that do not need one another start together. When one of them fails, the others are aborted.
// - Stopping runs every clean-up, also when one of them fails or hangs.
// - All clean-ups together have one budget. A hanging one is named, because "did not
//   stop in time" alone sends a person through the whole program.
// - Stopping twice is stopping once.
import { isAbort, linkSignals } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock } from "../concurrency/clock.ts";
import { RuntimeError } from "./runtime-error.ts";

export interface Stoppable {
  /** Ends what was started. The signal aborts when time is nearly up: let go of everything now. */
  stop(signal: AbortSignal): Promise<void>;
  /** Rejects when something that should run until stopped has failed. */
  readonly failed?: Promise<never>;
}

export interface Step {
  readonly name: string;
  /**
   * The signal ends a start that is under way. What has started runs until its own
   * `stop`: one signal for all would tear down every step at the same moment, and
   * the order would be lost.
   */
  start(signal: AbortSignal): Promise<Stoppable | undefined>;
}

export interface LifecycleOptions {
  /** Time for all clean-ups together. */
  readonly stopTimeoutMs: number;
  /** The last part of that time, in which clean-ups no longer wait for one another. */
  readonly forceTimeoutMs: number;
}

// Kubernetes gives a pod 30 s between SIGTERM and SIGKILL unless told otherwise.
export const defaultLifecycle: LifecycleOptions = { stopTimeoutMs: 30_000, forceTimeoutMs: 2_000 };

export interface LifecycleDeps {
  readonly clock: Clock;
}

/** Several start together; they stop one after the other all the same, in reverse. */
export type Stage = Step | readonly Step[];

/**
 * Runs what `begin` starts on the stack until the signal aborts or a started part fails, and resolves after a clean
 * stop. Rejects with the error of a start that failed, or with an AggregateError of every cause when a part failed or
 * did not stop.
 */
export async function runLifecycle(
  begin: (stack: LifecycleStack, signal: AbortSignal) => Promise<void>,
  options: LifecycleOptions,
  deps: LifecycleDeps,
  signal: AbortSignal,
): Promise<void> {
  const stack = new LifecycleStack(options, deps);
  const ended = linkSignals(signal, stack.taskFailed);
  try {
    await begin(stack, ended.signal);
    await aborted(ended.signal);
  } catch (error) {
    if (!isAbort(error, ended.signal)) return await failedStart(error, stack);
  } finally {
    ended.release();
  }
  await stack.stop();
}

/** The same for steps that are known beforehand. */
export function runSteps(
  stages: readonly Stage[],
  options: LifecycleOptions,
  deps: LifecycleDeps,
  signal: AbortSignal,
): Promise<void> {
  const begin = async (stack: LifecycleStack, starting: AbortSignal) => {
    for (const stage of stages) await stack.start(stage, starting);
  };
  return runLifecycle(begin, options, deps, signal);
}

async function failedStart(startError: unknown, stack: LifecycleStack): Promise<never> {
  try {
    await stack.stop();
  } catch (error) {
    if (!(error instanceof AggregateError)) throw error;
    throw joined([startError, ...error.errors]);
  }
  throw startError;
}

/** What has started so far. Whoever creates one has to stop it, also after a start that failed. */
export class LifecycleStack {
  private readonly options: LifecycleOptions;
  private readonly clock: Clock;
  private readonly started: { readonly name: string; readonly stoppable: Stoppable }[] = [];
  private readonly taskErrors: RuntimeError[] = [];
  private readonly taskFailure = new AbortController();
  private stopping: Promise<void> | undefined;

  constructor(options: LifecycleOptions, deps: LifecycleDeps) {
    this.options = options;
    this.clock = deps.clock;
  }

  /** Aborts when the first task of any started step has failed. */
  get taskFailed(): AbortSignal {
    return this.taskFailure.signal;
  }

  /** Rejects with the error of the first step that failed, or with the signal's reason when that ended the start. */
  async start(stage: Stage, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const steps = "name" in stage ? [stage] : stage;
    const linked = linkSignals(signal);
    const failures: unknown[] = [];
    const begin = async (step: Step) => {
      try {
        return await step.start(linked.signal);
      } catch (error) {
        if (!isAbort(error, linked.signal)) failures.push(error);
        linked.abort();
        return undefined;
      }
    };
    const started = await Promise.all(steps.map(begin));
    linked.release();
    for (const [index, stoppable] of started.entries())
      if (stoppable) this.register(steps[index]?.name ?? "", stoppable);
    if (failures.length > 0) throw failures[0];
    linked.signal.throwIfAborted();
  }

  /** Starts one part and returns it, for those that later parts are made of. */
  async open<T>(
    name: string,
    open: (signal: AbortSignal) => Promise<T>,
    stoppableOf: (part: T) => Stoppable,
    signal: AbortSignal,
  ): Promise<T> {
    const opened: T[] = [];
    const start = async (starting: AbortSignal) => {
      const part = await open(starting);
      opened.push(part);
      return stoppableOf(part);
    };
    await this.start({ name, start }, signal);
    return opened[0] as T;
  }

  /** Rejects with an AggregateError of every cause, failed tasks first. */
  stop(): Promise<void> {
    this.stopping ??= this.stopAll();
    return this.stopping;
  }

  private register(name: string, stoppable: Stoppable): void {
    this.started.push({ name, stoppable });
    stoppable.failed?.catch((cause: unknown) => {
      this.taskErrors.push(new RuntimeError("task_failed", `${name}: ${messageOf(cause)}`, { cause }));
      this.taskFailure.abort();
    });
  }

  private async stopAll(): Promise<void> {
    const errors: RuntimeError[] = [];
    const running = new Map<Promise<void>, string>();
    const { stopTimeoutMs, forceTimeoutMs } = this.options;
    const hurry = new AbortController();
    const overdue = new AbortController();
    const timers = [
      this.clock.setTimer(stopTimeoutMs - forceTimeoutMs, () => hurry.abort()),
      this.clock.setTimer(stopTimeoutMs, () => overdue.abort()),
    ];
    for (const { name, stoppable } of this.started.toReversed()) {
      // Starting one clean-up after the other keeps the order. Once it is time to hurry
      // the race is decided beforehand, so the rest begin at once rather than never.
      const cleanUp: Promise<void> = callStop(stoppable, hurry.signal)
        .catch((cause: unknown) => {
          errors.push(new RuntimeError("stop_failed", `stopping ${name}: ${messageOf(cause)}`, { cause }));
        })
        .finally(() => running.delete(cleanUp));
      running.set(cleanUp, name);
      await Promise.race([cleanUp, aborted(hurry.signal)]);
    }
    await Promise.race([Promise.all(running.keys()), aborted(overdue.signal)]);
    for (const timer of timers) timer.cancel();
    const late = [...running.values()].map(
      (name) =>
        new RuntimeError("stop_timed_out", `stopping ${name}: not done after ${stopTimeoutMs / 1000} s`),
    );
    const causes = [...this.taskErrors, ...errors, ...late];
    if (causes.length > 0) throw joined(causes);
  }
}

function joined(causes: readonly unknown[]): AggregateError {
  return new AggregateError(causes, causes.map(messageOf).join("; "));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// An async function, so that a clean-up that throws before its first await is a rejection like any other.
async function callStop(stoppable: Stoppable, signal: AbortSignal): Promise<void> {
  await stoppable.stop(signal);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else onAbort(signal, resolve);
  });
}
