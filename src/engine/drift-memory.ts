// Remembers what the server stored for the last manifest of each object, so that krane does not write for ever when a
// webhook changes what krane sends within the request.

// More than the objects krane has in a cluster; the least recently written are dropped first.
const memoriesMax = 50_000;

interface Memory {
  /** The hash of the content that was sent last, and of what the server stored for it. */
  readonly sent: string;
  readonly stored: string;
  /** What still differs and why krane leaves it, for people; empty if nothing does. */
  readonly left: string;
  /** What is left lowers the isolation of its pods, so it is not in sync, and is tried out repeatedly. */
  readonly isHeld: boolean;
}

export class DriftMemory {
  private readonly memories = new Map<string, Memory>();

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

  /** Records what the server has, without a write, because a write would not change it. */
  saw(object: string, sent: string, stored: string, left = "", isHeld = false): void {
    this.keep(object, { sent, stored, left, isHeld });
  }

  /** Records a write. */
  wrote(object: string, sent: string, stored: string, left = ""): void {
    this.keep(object, { sent, stored, left, isHeld: false });
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
