// How fast streams are let in. After a restart a whole fleet comes back within seconds,
// and each stream begins by reading; who comes too early is told when to come again.
//
// Each refusal is given the next free place in a line, so that the refused come back
// spread over the time that the line takes, and not all at the same second.
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";

export interface StreamAdmissionOptions {
  readonly perSecond: number;
  /** No more than these are open at a time. */
  readonly openMax: number;
}

/** Agents wait no longer than this, whatever they are told. */
const waitMaxSeconds = 60;
const fullWaitSeconds = 30;

export class StreamAdmission {
  private readonly options: StreamAdmissionOptions;
  private readonly deps: { readonly clock: Clock; onRefused?(): void };
  /** How many may come in now; refilled up to a second's worth. */
  private places: number;
  private filledAtMs: number;
  /** When the last place of the line will be free. */
  private lineEndsMs = 0;

  constructor(options: StreamAdmissionOptions, deps: { readonly clock: Clock; onRefused?(): void }) {
    this.options = options;
    this.deps = deps;
    this.places = options.perSecond;
    this.filledAtMs = deps.clock.nowMs();
  }

  /** Throws `unavailable` with a hint when to come again. */
  admit(openCount: number): void {
    if (openCount >= this.options.openMax)
      throw this.refusal(fullWaitSeconds, "as many streams as it can hold are open");
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
    throw this.refusal(waitSeconds, "many streams are coming back at once");
  }

  private refusal(waitSeconds: number, reason: string): ConnectError {
    this.deps.onRefused?.();
    const message = `${reason}; come again in ${waitSeconds} s`;
    return new ConnectError(message, Code.Unavailable, { "retry-after": `${waitSeconds}` });
  }
}
