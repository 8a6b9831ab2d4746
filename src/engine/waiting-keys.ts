// Keys that wait until another key is applied, as a deployment waits for its environment's policy. They come up again when it
// is, and meanwhile show why it is not.
import type { WorkPriority } from "../concurrency/work-queue.ts";
import { isTroubled, type ObjectStatuses, type OutcomeChange, type OutcomeRecord } from "./object-status.ts";

export interface WaitingKeysDeps {
  readonly statuses: ObjectStatuses;
  enqueue(key: string, priority: WorkPriority): void;
}

export class WaitingKeys {
  private readonly waiting = new Map<string, Set<string>>();
  private readonly deps: WaitingKeysDeps;

  constructor(deps: WaitingKeysDeps) {
    this.deps = deps;
  }

  /** Returns what to record of the key that waits. */
  add(key: string, awaited: string): OutcomeChange {
    const waiting = this.waiting.get(awaited) ?? new Set();
    this.waiting.set(awaited, waiting.add(key));
    const trouble = this.bringUp(awaited);
    return trouble === undefined
      ? { outcome: "pending", reason: `waiting for ${awaited}` }
      : waitingBehind(awaited, trouble.reason);
  }

  /** Enqueues a key that others wait for; returns its record if it is failing. */
  bringUp(key: string): OutcomeRecord | undefined {
    const record = this.deps.statuses.get(key);
    // A failing key keeps its back-off, however many keys wait for it.
    const isFailing = record !== undefined && record.attempts > 0;
    this.deps.enqueue(key, isFailing ? "resync" : "fresh");
    return isFailing ? record : undefined;
  }

  wake(awaited: string): void {
    const waiting = this.waiting.get(awaited);
    this.waiting.delete(awaited);
    for (const other of waiting ?? []) this.deps.enqueue(other, "fresh");
  }

  /** Those that wait for the key show its trouble. */
  show(awaited: string, { outcome, reason }: OutcomeRecord): void {
    if (!isTroubled(outcome)) return;
    for (const other of this.waiting.get(awaited) ?? [])
      this.deps.statuses.record(other, waitingBehind(awaited, reason));
  }
}

function waitingBehind(awaited: string, reason: string): OutcomeChange {
  return { outcome: "retrying", reason: `waiting for ${awaited}: ${reason}` };
}
