// Events on their way to one watcher. The queue is bounded: a watcher that does not keep
// up is cut off, and resumes from the last event that it saw.

export class WatchQueue implements AsyncIterable<unknown> {
  private readonly waiting: unknown[] = [];
  private readonly sizeMax: number;
  private wake: (() => void) | undefined;
  private ended = false;

  constructor(sizeMax: number) {
    this.sizeMax = sizeMax;
  }

  get isEnded(): boolean {
    return this.ended;
  }

  push(event: unknown): void {
    if (this.ended) return;
    if (this.waiting.length >= this.sizeMax) {
      this.end();
      return;
    }
    this.waiting.push(event);
    this.notify();
  }

  /** What was pushed before still comes out. */
  end(): void {
    this.ended = true;
    this.notify();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<unknown> {
    try {
      for (;;) {
        const event = this.waiting.shift();
        if (event !== undefined) yield event;
        else if (this.ended) return;
        else await new Promise<void>((resolve) => (this.wake = resolve));
      }
    } finally {
      this.end();
    }
  }

  private notify(): void {
    this.wake?.();
    this.wake = undefined;
  }
}
