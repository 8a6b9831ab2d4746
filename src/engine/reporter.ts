// Tells the control plane what is really there (K9).
//
// - A report is made when its turn comes, from what is there then: any number of changes in between is
//   one report, and what waits is bounded by the number of keys.
// - The same news is not told twice, but for a full telling now and then, spread over time, because the
//   control plane may have lost what it was told.
// - A report that fails stays due until it is delivered, or refused for good. Nothing else waits for it.
// - What a control plane that was away has missed is told as soon as there is reason to believe that it is back.

import { type Backoff, createBackoff } from "../concurrency/backoff.ts";
import { CircuitBreaker, CircuitOpenError } from "../concurrency/circuit-breaker.ts";
import type { Clock } from "../concurrency/clock.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import { type WorkOutcome, WorkQueue } from "../concurrency/work-queue.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { classifyReport, speaksOfHealth } from "./classify.ts";

export interface Observation {
  readonly change: "update" | "delete";
  /** Equal for equal reports. */
  readonly fingerprint: string;
  send(signal: AbortSignal): Promise<void>;
}

export interface ReporterOptions {
  /** Reports in flight at once. */
  readonly workers: number;
  /** Everything is told again before this much time has passed. Default 10 min. */
  readonly resendMs?: number;
}

export interface ReporterDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly breaker: CircuitBreaker;
  /** What there is to say about a key now; undefined for nothing. */
  observe(key: string): Observation | undefined;
  /** That it is gone is news also about an object that was never reported. */
  isDeletionWanted(key: string): boolean;
  onError(key: string, error: unknown): void;
}

interface Told {
  readonly change: "update" | "delete";
  readonly fingerprint: string;
  readonly againMs: number;
}

const backoff = { initialMs: 1_000, maxMs: 60_000, jitter: "equal" } as const;
const calm = { initialMs: 2_000, maxMs: 60_000, jitter: "equal" } as const;
const resendMsDefault = 600_000;
const done: WorkOutcome = { kind: "done" };

export class Reporter {
  private readonly options: ReporterOptions;
  private readonly deps: ReporterDeps;
  private readonly queue: WorkQueue;
  private readonly told = new Map<string, Told>();
  /** What a control plane that is away has missed. */
  private readonly missed = new Set<string>();
  private readonly calm: Backoff;
  private calmUntilMs = 0;
  /** When the breaker is to let probes through. */
  private probeAtMs: number | undefined;

  constructor(options: ReporterOptions, deps: ReporterDeps) {
    this.options = options;
    this.deps = deps;
    this.calm = createBackoff(calm, deps.random);
    this.queue = new WorkQueue(
      { backoff },
      { clock: deps.clock, random: deps.random, onHandlerError: (key, error) => deps.onError(key, error) },
    );
  }

  /** Something about the key may have changed. */
  changed(key: string): void {
    this.queue.add(key);
  }

  /** Tells again what was told too long ago. */
  resendDue(): void {
    const nowMs = this.deps.clock.nowMs();
    for (const [key, { againMs, change }] of this.told) {
      if (change === "delete" || againMs > nowMs) continue;
      this.told.set(key, { change, fingerprint: "", againMs });
      this.queue.add(key, "resync");
    }
  }

  /**
   * The control plane seems to be back: nothing that it missed waits for its back-off. Signs come often, also from
   * one that takes no report, so they are heeded less and less often until a report has arrived.
   */
  retryMissed(): void {
    if (this.missed.size === 0 || this.probeAtMs !== undefined) return;
    const nowMs = this.deps.clock.nowMs();
    this.probeAtMs = Math.max(nowMs, this.calmUntilMs);
    for (const key of this.missed) {
      this.queue.forget(key);
      this.queue.addAfter(key, this.probeAtMs - nowMs);
    }
  }

  forget(key: string): void {
    this.told.delete(key);
  }

  /** How many keys have something to say that was not delivered yet. */
  get dueCount(): number {
    const { waiting, delayed, inFlight } = this.queue.counts;
    return waiting.fresh + waiting.resync + delayed + inFlight;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.queue.run(this.options.workers, (key, workSignal) => this.report(key, workSignal), signal);
  }

  private async report(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const outcome = await this.tell(key, signal);
    if (outcome.kind === "done") this.missed.delete(key);
    return outcome;
  }

  private async tell(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const observation = this.deps.observe(key);
    const told = this.told.get(key);
    if (observation === undefined || observation.fingerprint === told?.fingerprint) return done;
    const { change, fingerprint } = observation;
    if (change === "delete" && told === undefined && !this.deps.isDeletionWanted(key)) return done;
    this.probeWhereDue();
    try {
      await this.deps.breaker.execute(() => observation.send(signal));
      this.calm.reset();
      this.calmUntilMs = 0;
    } catch (error) {
      signal.throwIfAborted();
      const failure = classifyReport(error, change);
      if (failure === undefined) throw error;
      if (failure.kind === "retry") {
        // What the server itself has put off is not brought up by a sign.
        const isHinted = failure.atLeastMs !== undefined && !(error instanceof CircuitOpenError);
        if (isHinted || !isCutOff(error)) this.missed.delete(key);
        else this.missed.add(key);
        // It came up too early, from its back-off: the breaker's minute is not what it has to wait for.
        if (error instanceof CircuitOpenError && this.probeAtMs !== undefined)
          return {
            kind: "again",
            afterMs: Math.min(error.retryAfterMs, this.probeAtMs - this.deps.clock.nowMs()),
          };
        return failure;
      }
    }
    if (change === "delete" && !this.deps.isDeletionWanted(key)) {
      // Nobody will speak of it again, and a memory of everything that ever was would have no limit.
      this.told.delete(key);
      return done;
    }
    const resendMs = this.options.resendMs ?? resendMsDefault;
    const againMs = this.deps.clock.nowMs() + uniform(this.deps.random, resendMs / 2, resendMs);
    this.told.set(key, { change, fingerprint, againMs });
    return done;
  }

  private probeWhereDue(): void {
    const nowMs = this.deps.clock.nowMs();
    if (this.probeAtMs === undefined || nowMs < this.probeAtMs) return;
    this.probeAtMs = undefined;
    this.calmUntilMs = nowMs + this.calm.nextMs();
    this.deps.breaker.probe();
  }
}

function isCutOff(error: unknown): boolean {
  return error instanceof CircuitOpenError || speaksOfHealth(error);
}

// The circuit breaker of one controller's reports, with its metrics.

interface ReportBreakerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "circuitBreakerRequests" | "circuitBreakerErrors">;
}

export function createReportBreaker(
  controller: string,
  { clock, metrics, log }: ReportBreakerDeps,
): CircuitBreaker {
  // The names that dashboards of the original know: deployment_state_update, sentinel_state_update.
  const service = `${controller.replace(/s$/, "")}_state_update`;
  return new CircuitBreaker(
    { name: service },
    {
      clock,
      countsAsFailure: speaksOfHealth,
      observer: {
        onRequest: (action) => metrics.circuitBreakerRequests.inc({ service, action }),
        onFailure: (action) => metrics.circuitBreakerErrors.inc({ service, action }),
        onTransition: (previousState, state) =>
          log.warn("the circuit breaker of the reports changed", { controller, previousState, state }),
      },
    },
  );
}
