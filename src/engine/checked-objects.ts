// What is known about objects that are not watched: they are read by name, and a reading counts for some minutes.
import type { Clock } from "../concurrency/clock.ts";
import { objectKey } from "../kube/object-cache.ts";
import type { ObjectRef, ResourceKind } from "../kube/types.ts";
import type { Ownership } from "../model/ownership.ts";

/** One reading of an object. */
export interface CheckedEntry {
  readonly kind: ResourceKind;
  readonly key: string;
  readonly uid: string;
  readonly value: { readonly ownership: Ownership };
  /** Until when it need not be read again; in the past for one that is not krane's. */
  readonly untilMs: number;
  readonly readMs: number;
}

// How long a check counts; then the object is read again, in case somebody removed it.
const checkAgainMs = 600_000;
// An object that is still wanted has been read again by then.
const forgottenMs = 2 * checkAgainMs;
const entriesMax = 10_000;

export class CheckedObjects {
  private readonly clock: Clock;
  private readonly entries = new Map<string, CheckedEntry>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Whether the object was in sync a short time ago. */
  isDone(name: string): boolean {
    return (this.entries.get(name)?.untilMs ?? 0) > this.clock.nowMs();
  }

  /** Whether this process has seen it in sync. */
  has(name: string): boolean {
    return this.entries.get(name)?.value.ownership.kind === "ours";
  }

  note(
    name: string,
    object: { readonly kind: ResourceKind; readonly ref: ObjectRef },
    reading: { readonly uid: string; readonly ownership: Ownership; readonly isDone: boolean },
  ): void {
    const { kind, ref } = object;
    const { uid, ownership, isDone } = reading;
    const readMs = this.clock.nowMs();
    const untilMs = isDone ? readMs + checkAgainMs : 0;
    if (this.entries.size >= entriesMax) this.entries.clear();
    this.entries.set(name, { kind, key: objectKey(ref), uid, value: { ownership }, untilMs, readMs });
  }

  /** The last readings, without those of objects that nothing wants any more. */
  *all(): IterableIterator<CheckedEntry> {
    const sinceMs = this.clock.nowMs() - forgottenMs;
    for (const entry of this.entries.values()) if (entry.readMs >= sinceMs) yield entry;
  }

  forgetNamespace(namespace: string): void {
    for (const [name, { key }] of this.entries)
      if (key.startsWith(`${namespace}/`)) this.entries.delete(name);
  }
}
