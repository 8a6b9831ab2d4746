// A circuit breaker: stops calling a peer that keeps failing, and probes it until it is back.
//
// - closed: every call goes through; enough failures within the window trip the breaker.
// - open: no call goes through until the open time has passed, or probe() is called.
// - halfopen: a limited number of probes goes through. If all succeed, the breaker closes; if one fails, it opens again
//   for the full time.
//
// Probes are not counted per window, so a breaker with little traffic closes too. A result counts only in the phase that
// admitted its call: a late failure from before the trip cannot fail a probe, and a late success cannot close the breaker.
// Calls must have their own deadlines; one that never settles would keep its probe for ever.
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";
import type { Clock } from "./clock.ts";
import { notify } from "./notify.ts";

export type CircuitState = "closed" | "open" | "halfopen";

export interface CircuitBreakerOptions {
  readonly name: string;
  /** This many failures within the window trip the breaker. Default 5. */
  readonly failuresToTrip?: number;
  /** Default 5 s. */
  readonly windowMs?: number;
  /** How long the breaker stays open after a trip. Default 60 s. */
  readonly openMs?: number;
  /** Probes that are let through when half-open, and that all must succeed. Default 10. */
  readonly probes?: number;
}

export interface CircuitBreakerDeps {
  readonly clock: Clock;
  /**
   * Whether an error means that the peer is unhealthy. A refusal of one request or a cancellation does not, and counts as
   * neither failure nor success.
   */
  countsAsFailure(error: unknown): boolean;
  /** For metrics. Its errors are ignored. */
  readonly observer?: CircuitObserver;
}

export interface CircuitObserver {
  /** A call came in this state; it may have been turned away. */
  onRequest?(state: CircuitState): void;
  /** A call that was let through in this state failed. */
  onFailure?(state: CircuitState): void;
  /** From open to half-open it is called with the next call, not at the moment the open time is over. */
  onTransition?(from: CircuitState, to: CircuitState): void;
}

/** The call was not made. */
export class CircuitOpenError extends CodedError<"CircuitOpenError"> {
  override readonly name = "CircuitOpenError";
  /** An earlier retry would fail too. */
  readonly retryAfterMs: number;

  constructor(name: string, code: ErrorCode<"CircuitOpenError">, retryAfterMs: number) {
    super(
      code,
      code === "tripped"
        ? `circuit breaker ${name} is open for another ${Math.ceil(retryAfterMs)} ms`
        : `circuit breaker ${name} is half-open and all its probes are in use`,
    );
    this.retryAfterMs = retryAfterMs;
  }
}

// Each phase is a new object, so its identity distinguishes a result of this phase from a late one of an earlier phase in
// the same state.
type Phase = ClosedPhase | OpenPhase | HalfOpenPhase;

interface ClosedPhase {
  readonly state: "closed";
  /** The latest failures, oldest first, never more than it takes to trip. */
  readonly failedAtMs: number[];
}

interface OpenPhase {
  readonly state: "open";
  readonly untilMs: number;
}

interface HalfOpenPhase {
  readonly state: "halfopen";
  /** Probes in flight and probes that succeeded. */
  admitted: number;
  succeeded: number;
}

// When all probes are in flight it is unknown when one ends; this is just long enough to keep callers from spinning.
const probeWaitMs = 1_000;

export class CircuitBreaker {
  private readonly options: Required<CircuitBreakerOptions>;
  private readonly deps: CircuitBreakerDeps;
  private phase: Phase = { state: "closed", failedAtMs: [] };

  constructor(options: CircuitBreakerOptions, deps: CircuitBreakerDeps) {
    this.options = { failuresToTrip: 5, windowMs: 5_000, openMs: 60_000, probes: 10, ...options };
    this.deps = deps;
  }

  /** The state that the next call would find. */
  get state(): CircuitState {
    return this.openTimeIsOver() ? "halfopen" : this.phase.state;
  }

  /** Makes the call, or rejects with a CircuitOpenError without making it. */
  async execute<T>(call: () => Promise<T>): Promise<T> {
    const phase = this.admit();
    let value: T;
    try {
      value = await call();
    } catch (error) {
      // Settled in any case, because a classifier that throws must not keep the probe.
      let failed = true;
      try {
        failed = this.deps.countsAsFailure(error);
      } finally {
        if (failed) this.settleFailure(phase);
        else this.settleNeutral(phase);
      }
      throw error;
    }
    this.settleSuccess(phase);
    return value;
  }

  /**
   * The peer gave a sign of life: probes are let through at once. Probes already in flight were sent earlier, and no longer
   * count.
   */
  probe(): void {
    if (this.phase.state !== "closed") this.enter({ state: "halfopen", admitted: 0, succeeded: 0 });
  }

  private admit(): Phase {
    if (this.openTimeIsOver()) this.enter({ state: "halfopen", admitted: 0, succeeded: 0 });
    const phase = this.phase;
    notify(() => this.deps.observer?.onRequest?.(phase.state));
    if (phase.state === "open")
      throw new CircuitOpenError(this.options.name, "tripped", phase.untilMs - this.deps.clock.nowMs());
    if (phase.state === "halfopen") {
      if (phase.admitted >= this.options.probes)
        throw new CircuitOpenError(this.options.name, "too_many_probes", probeWaitMs);
      phase.admitted += 1;
    }
    return phase;
  }

  private settleSuccess(phase: Phase): void {
    if (phase !== this.phase || phase.state !== "halfopen") return;
    phase.succeeded += 1;
    if (phase.succeeded >= this.options.probes) this.enter({ state: "closed", failedAtMs: [] });
  }

  private settleNeutral(phase: Phase): void {
    if (phase.state === "halfopen") phase.admitted -= 1;
  }

  private settleFailure(phase: Phase): void {
    notify(() => this.deps.observer?.onFailure?.(phase.state));
    if (phase !== this.phase) return;
    if (phase.state === "halfopen") this.trip();
    if (phase.state === "closed" && this.countFailure(phase.failedAtMs)) this.trip();
  }

  /** Whether this failure trips the breaker. */
  private countFailure(failedAtMs: number[]): boolean {
    const nowMs = this.deps.clock.nowMs();
    failedAtMs.push(nowMs);
    if (failedAtMs.length > this.options.failuresToTrip) failedAtMs.shift();
    const [oldestMs = nowMs] = failedAtMs;
    return failedAtMs.length === this.options.failuresToTrip && nowMs - oldestMs < this.options.windowMs;
  }

  private trip(): void {
    this.enter({ state: "open", untilMs: this.deps.clock.nowMs() + this.options.openMs });
  }

  private enter(phase: Phase): void {
    const from = this.phase.state;
    this.phase = phase;
    if (from !== phase.state) notify(() => this.deps.observer?.onTransition?.(from, phase.state));
  }

  private openTimeIsOver(): boolean {
    return this.phase.state === "open" && this.deps.clock.nowMs() >= this.phase.untilMs;
  }
}
