// One controller: a queue of keys and what brings the object behind a key into order. It
// is level-triggered: a key says that something may have changed, never what.
import type { Clock } from "../../../concurrency/clock.ts";
import type { Random } from "../../../concurrency/random.ts";
import { type WorkOutcome, WorkQueue } from "../../../concurrency/work-queue.ts";
import type { ClusterClient } from "./cluster-client.ts";
import type { ClusterView } from "./cluster-view.ts";

export interface ControllerDeps {
  readonly client: ClusterClient;
  readonly view: ClusterView;
  readonly clock: Clock;
  readonly random: Random;
  /** Told of every failed attempt; conflicts are part of normal life and told too. */
  onError(controller: string, key: string, error: unknown): void;
}

export interface Controller {
  readonly name: string;
  /** Resolves when the signal has aborted. */
  run(signal: AbortSignal): Promise<void>;
}

export type Reconcile = (key: string, signal: AbortSignal) => Promise<WorkOutcome>;

export const done: WorkOutcome = { kind: "done" };

const backoff = { initialMs: 20, maxMs: 10_000, jitter: "equal" } as const;

/** One worker: the order of writes is then the order of keys, in every run the same. */
export function createQueue(name: string, deps: ControllerDeps): WorkQueue {
  return new WorkQueue(
    { backoff },
    {
      clock: deps.clock,
      random: deps.random,
      onHandlerError: (key, error) => deps.onError(name, key, error),
    },
  );
}

export function controllerOf(name: string, queue: WorkQueue, reconcile: Reconcile): Controller {
  return { name, run: (signal) => queue.run(1, reconcile, signal) };
}
