// What repairing an object has come to so far. Two things must not make krane write for ever: a webhook
// that changes what krane sends in the same request, and another program that changes it back each time.
import type { Clock } from "../concurrency/clock.ts";

// So many repairs within the window are an accident; one more is a fight.
const repairsFree = 3;
const windowMs = 600_000;
const pauseFirstMs = 10_000;
const pauseMaxMs = 600_000;

// More than a cluster has objects of krane's; those that were not written for longest are forgotten first.
const memoriesMax = 50_000;

interface Memory {
  /** The content that was sent last, and what the server made of it. */
  readonly sent: string;
  readonly stored: string;
  repairs: number;
  lastRepairMs: number;
}

export class DriftMemory {
  private readonly clock: Clock;
  private readonly memories = new Map<string, Memory>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Whether the object was ever written by this process, as far as it remembers. */
  knows(object: string): boolean {
    return this.memories.has(object);
  }

  /** Whether the live content is what the server made of this manifest when krane sent it. */
  isAsStored(object: string, wanted: string, live: string): boolean {
    const memory = this.memories.get(object);
    return memory?.sent === wanted && memory.stored === live;
  }

  /** How long to leave an object alone that somebody keeps changing; 0 while there is no sign of that. */
  pauseMs(object: string, wanted: string): number {
    const memory = this.memories.get(object);
    if (memory === undefined || memory.sent !== wanted || memory.repairs < repairsFree) return 0;
    const sinceMs = this.clock.nowMs() - memory.lastRepairMs;
    const pauseMs = Math.min(pauseMaxMs, pauseFirstMs * 2 ** (memory.repairs - repairsFree));
    return Math.max(0, pauseMs - sinceMs);
  }

  /** A manifest was sent. The same one again, before long, is a repair. */
  wrote(object: string, sent: string, stored: string): void {
    const nowMs = this.clock.nowMs();
    const before = this.memories.get(object);
    const isRepair = before?.sent === sent;
    const isRecent = isRepair && nowMs - before.lastRepairMs < windowMs + pauseMaxMs;
    const repairs = isRepair ? (isRecent ? before.repairs : 0) + 1 : 0;
    this.memories.delete(object);
    this.memories.set(object, { sent, stored, repairs, lastRepairMs: nowMs });
    if (this.memories.size <= memoriesMax) return;
    for (const oldest of this.memories.keys()) {
      this.memories.delete(oldest);
      return;
    }
  }
}
