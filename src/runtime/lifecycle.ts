// Starts the parts of a process in order and stops them in reverse, also after failures. The agent, the server, the
// vault server and `krane dev` all run on it.
//
// - When a start fails, everything that had started is stopped, then the error is thrown.
// - The steps of a stage start together. When one of them fails, the others are aborted.
// - Stopping runs every clean-up, even when one of them fails or hangs.
// - All clean-ups share one time limit. The error names the one that hangs, because "did not stop in time" alone would
//   not tell where to look.
// - Stopping twice is the same as stopping once.
import { isAbort, linkSignals } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock } from "../concurrency/clock.ts";
import { RuntimeError } from "./runtime-error.ts";

export interface Stoppable {
  /** Ends what was started. The signal aborts when time is nearly up: stop waiting and release everything. */
  stop(signal: AbortSignal): Promise<void>;
  /** Rejects when something that should run until stopped has failed. */
  readonly failed?: Promise<never>;
}

export interface LifecycleStep {
  readonly name: string;
  /**
   * The signal only aborts the start. What has started runs until its own `stop`: one signal for all would stop every
   * step at the same moment, in no order.
   */
  start(signal: AbortSignal): Promise<Stoppable | undefined>;
}

export interface LifecycleOptions {
  /** Time limit for all clean-ups together. */
  readonly stopTimeoutMs: number;
  /** The last part of that time, in which clean-ups no longer wait for one another. */
  readonly forceTimeoutMs: number;
}

// Kubernetes gives a pod 30 s between SIGTERM and SIGKILL unless told otherwise.
export const defaultLifecycle: LifecycleOptions = { stopTimeoutMs: 30_000, forceTimeoutMs: 2_000 };

export interface LifecycleDeps {
  readonly clock: Clock;
}

/** The steps of a list start together. They still stop one after the other, in reverse. */
export type Stage = LifecycleStep | readonly LifecycleStep[];

/**
 * Runs what `begin` starts on the stack until the signal aborts or a started part fails, and resolves after a clean
 * stop. Rejects with the error of a failed start, or with an AggregateError of all causes when a part failed or did not
 * stop.
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

/** The same for steps that are known in advance. */
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

/** The parts that have started so far. The creator must call stop(), even after a failed start. */
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

  /** Aborts when a task of any started step fails. */
  get taskFailed(): AbortSignal {
    return this.taskFailure.signal;
  }

  /** Rejects with the error of the first step that failed, or with the signal's reason when it aborted the start. */
  async start(stage: Stage, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const steps = "name" in stage ? [stage] : stage;
    const linked = linkSignals(signal);
    const failures: unknown[] = [];
    const begin = async (step: LifecycleStep) => {
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

  /** Starts one part and returns it, for parts that later ones need. */
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

  /** Rejects with an AggregateError of all causes, failed tasks first. */
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
      // Starting one clean-up after the other keeps the order. Once `hurry` has aborted, the race resolves immediately,
      // so the remaining clean-ups all start instead of never.
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
        new RuntimeError("stop_timed_out", `stopping ${name}: not finished after ${stopTimeoutMs / 1000} s`),
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

// Async, so that a synchronous throw becomes a rejection.
async function callStop(stoppable: Stoppable, signal: AbortSignal): Promise<void> {
  await stoppable.stop(signal);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else onAbort(signal, resolve);
  });
}
