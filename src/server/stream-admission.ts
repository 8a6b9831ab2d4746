// Limits how fast streams are accepted. After a restart a whole fleet reconnects within
// seconds, and each stream begins with a read; a stream that comes too early is told when
// to retry.
//
// Each rejected stream gets the next free slot in a queue, so that retries are spread over
// the length of the queue instead of arriving in the same second.
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";

export interface StreamAdmissionOptions {
  readonly perSecond: number;
  /** The maximum number of open streams. */
  readonly openMax: number;
}

/** Agents wait no longer than this, whatever the hint. */
const waitMaxSeconds = 60;
const fullWaitSeconds = 30;

export class StreamAdmission {
  private readonly options: StreamAdmissionOptions;
  private readonly deps: { readonly clock: Clock; onRefused?(): void };
  /** How many may be accepted now; refilled up to one second's worth. */
  private places: number;
  private filledAtMs: number;
  /** When the last slot of the queue will be free. */
  private lineEndsMs = 0;

  constructor(options: StreamAdmissionOptions, deps: { readonly clock: Clock; onRefused?(): void }) {
    this.options = options;
    this.deps = deps;
    this.places = options.perSecond;
    this.filledAtMs = deps.clock.nowMs();
  }

  /** Throws `unavailable` with a retry hint. */
  admit(openCount: number): void {
    if (openCount >= this.options.openMax)
      throw this.refusal(fullWaitSeconds, "the maximum number of streams is open");
    const { perSecond } = this.options;
    const nowMs = this.deps.clock.nowMs();
    this.places = Math.min(perSecond, this.places + ((nowMs - this.filledAtMs) / 1_000) * perSecond);
    this.filledAtMs = nowMs;
    if (this.places >= 1) {
      this.places -= 1;
      return;
    }
    this.lineEndsMs = Math.max(this.lineEndsMs, nowMs) + 1_000 / perSecond;
    const waitSeconds = Math.min(waitMaxSeconds, Math.ceil((this.lineEndsMs - nowMs) / 1_000));
    throw this.refusal(waitSeconds, "many streams are reconnecting at once");
  }

  private refusal(waitSeconds: number, reason: string): ConnectError {
    this.deps.onRefused?.();
    const message = `${reason}; retry in ${waitSeconds} s`;
    return new ConnectError(message, Code.Unavailable, { "retry-after": `${waitSeconds}` });
  }
}
