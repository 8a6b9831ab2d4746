// Remembers past writes of each object, so that krane does not write for ever in two cases: a webhook that changes
// what krane sends within the request, and another program that reverts every write.
import type { Clock } from "../concurrency/clock.ts";

// This many repairs within the window happen at once. After that, another program is assumed to fight krane.
const repairsFree = 3;
const windowMs = 600_000;
const pauseFirstMs = 10_000;
const pauseMaxMs = 600_000;

// More than the objects krane has in a cluster; the least recently written are dropped first.
const memoriesMax = 50_000;

interface Memory {
  /** The hash of the content that was sent last, and of what the server stored for it. */
  readonly sent: string;
  readonly stored: string;
  /** What still differs and why krane leaves it, for people; empty if nothing does. */
  readonly left: string;
  /** What is left lowers the isolation of its pods, so it is not in sync, and is tried out again and again. */
  readonly isHeld: boolean;
  repairs: number;
  lastRepairMs: number;
}

export class DriftMemory {
  private readonly clock: Clock;
  private readonly memories = new Map<string, Memory>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Whether this process remembers writing the object. */
  knows(object: string): boolean {
    return this.memories.has(object);
  }

  /** Whether the last write of the object sent this manifest; undefined if this process did not write it. */
  wasSent(object: string, wanted: string): boolean | undefined {
    const memory = this.memories.get(object);
    return memory && memory.sent === wanted;
  }

  /** Whether the live content is what the server stored when krane sent this manifest. */
  isAsStored(object: string, wanted: string, live: string): boolean {
    const memory = this.memories.get(object);
    return memory?.sent === wanted && memory.stored === live && !memory.isHeld;
  }

  /** What still differs from the manifest after the last write. */
  leftOf(object: string, wanted: string): string {
    const memory = this.memories.get(object);
    return memory?.sent === wanted ? memory.left : "";
  }

  isHeld(object: string): boolean {
    return this.memories.get(object)?.isHeld ?? false;
  }

  /** How long to wait before the next repair of an object that another program keeps changing; 0 for any other. */
  pauseMs(object: string, wanted: string): number {
    const memory = this.memories.get(object);
    if (memory === undefined || memory.sent !== wanted || memory.repairs < repairsFree) return 0;
    const sinceMs = this.clock.nowMs() - memory.lastRepairMs;
    const pauseMs = Math.min(pauseMaxMs, pauseFirstMs * 2 ** (memory.repairs - repairsFree));
    return Math.max(0, pauseMs - sinceMs);
  }

  /** Records what the server has, without a write, because a write would not change it. */
  saw(object: string, sent: string, stored: string, left = "", isHeld = false): void {
    const before = this.memories.get(object);
    const { repairs = 0, lastRepairMs = 0 } = before?.sent === sent ? before : {};
    this.keep(object, { sent, stored, left, isHeld, repairs, lastRepairMs });
  }

  /** Records a write. Writing the same manifest again is a repair. */
  wrote(object: string, sent: string, stored: string, left = ""): void {
    const nowMs = this.clock.nowMs();
    const before = this.memories.get(object);
    const isRepair = before?.sent === sent;
    const isRecent = isRepair && nowMs - before.lastRepairMs < windowMs + pauseMaxMs;
    const repairs = isRepair ? (isRecent ? before.repairs : 0) + 1 : 0;
    this.keep(object, { sent, stored, left, isHeld: false, repairs, lastRepairMs: nowMs });
  }

  private keep(object: string, memory: Memory): void {
    this.memories.delete(object);
    this.memories.set(object, memory);
    if (this.memories.size <= memoriesMax) return;
    for (const oldest of this.memories.keys()) {
      this.memories.delete(oldest);
      return;
    }
  }
}
