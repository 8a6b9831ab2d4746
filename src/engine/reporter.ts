// Reports the observed state of objects to the control plane (K9).
//
// - A report is built when it is sent, from what the cache holds then. Any number of changes in between becomes one
//   report, and the queue is bounded by the number of keys.
// - A report equal to the last delivered one is not sent, except for a periodic resend, spread over time, because
//   the control plane may have lost what it was sent.
// - A failed report is retried until it is delivered or rejected. It delays nothing else.
// - After an outage, everything undelivered is sent as soon as the control plane shows a sign of life.
//
// How reports resume after an outage. Reports go through a circuit breaker, which stays open for up to a minute after
// it trips. Reports that fail meanwhile are `undelivered`. A sign of life (an open stream, a message on it) calls
// retryMissed(), which schedules a probe: at `probeAtMs` the undelivered reports are sent and the breaker is told to
// let probes through. A control plane can give signs of life and still fail every report, so probes back off: after
// one, the next comes no earlier than `nextProbeMs`. The first delivered report resets that back-off.

import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Backoff, createBackoff } from "../concurrency/backoff.ts";
import { CircuitBreaker, CircuitOpenError } from "../concurrency/circuit-breaker.ts";
import type { Clock } from "../concurrency/clock.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import { type WorkOutcome, WorkQueue } from "../concurrency/work-queue.ts";
import type { ControlPlane, WireKind } from "../control-plane/connection.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import { createReportOrders, type ReportingOptions } from "../control-plane/report-order.ts";
import type { Leadership } from "../kube/leadership.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { classifyReport, isOutage } from "./classify.ts";

export interface Observation {
  readonly change: "update" | "delete";
  /** Equal for equal reports. */
  readonly fingerprint: string;
  /** It says that nothing of the object is left. After a Delete it waits until that is true of all its parts. */
  readonly saysGone?: true;
  send(signal: AbortSignal): Promise<void>;
}

export interface ReporterOptions {
  /** Reports in flight at once. */
  readonly workers: number;
  /** Every report is sent again within this time. Default 10 min. */
  readonly resendMs?: number;
}

export interface ReporterDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly breaker: CircuitBreaker;
  /** What to report about a key now; undefined for nothing. "unclear": more has to be known first. */
  observe(key: string): Observation | "unclear" | undefined;
  /** If so, the deletion is reported even for an object that was never reported before. */
  isDeletionWanted(key: string): boolean;
  /** Whether such a deletion is complete. The key comes up again when it is. */
  isDeleted(key: string): boolean;
  onError(key: string, error: unknown): void;
  /** A report was sent, and how that ended. */
  onSent(sent: SentReport): void;
}

export interface SentReport {
  readonly key: string;
  readonly change: "update" | "delete";
  readonly durationMs: number;
  /** Absent if the control plane has the state that the report carries. */
  readonly error?: unknown;
}

/** The last report about a key that needs no retry: delivered, or rejected. */
interface LastReport {
  readonly change: "update" | "delete";
  /** Empty when the report is due for a resend: no observation has this fingerprint. */
  readonly fingerprint: string;
  readonly resendAtMs: number;
}

const backoff = { initialMs: 1_000, maxMs: 60_000, jitter: "equal" } as const;
const probeBackoff = { initialMs: 2_000, maxMs: 60_000, jitter: "equal" } as const;
const resendMsDefault = 600_000;
const done: WorkOutcome = { kind: "done" };
// Mostly while an agent starts and has not heard of its desired state yet.
const unclear: WorkOutcome = { kind: "again", afterMs: 5_000 };

export class Reporter {
  private readonly options: ReporterOptions;
  private readonly deps: ReporterDeps;
  private readonly queue: WorkQueue;
  private readonly lastReports = new Map<string, LastReport>();
  /** Keys whose last report failed because of the outage: the breaker was open, or the control plane failed. */
  private readonly undelivered = new Set<string>();
  /** Grows with every probe since the last delivered report. */
  private readonly probeBackoff: Backoff;
  /** No probe before this time; 0 when a probe may come at once. */
  private nextProbeMs = 0;
  /** When the scheduled probe is due; undefined while none is scheduled. */
  private probeAtMs: number | undefined;

  constructor(options: ReporterOptions, deps: ReporterDeps) {
    this.options = options;
    this.deps = deps;
    this.probeBackoff = createBackoff(probeBackoff, deps.random);
    this.queue = new WorkQueue(
      { backoff },
      { clock: deps.clock, random: deps.random, onHandlerError: (key, error) => deps.onError(key, error) },
    );
  }

  /** The observed state of the key may have changed. */
  changed(key: string): void {
    this.queue.add(key);
  }

  /** Sends again the reports whose resend time has come. */
  resendDue(): void {
    const nowMs = this.deps.clock.nowMs();
    for (const [key, { resendAtMs, change }] of this.lastReports) {
      if (change === "delete" || resendAtMs > nowMs) continue;
      this.lastReports.set(key, { change, fingerprint: "", resendAtMs });
      this.queue.add(key, "resync");
    }
  }

  /**
   * The control plane started a new incarnation, and may have lost every report. Spread over a time, because a failover
   * reaches all agents at once.
   */
  resendAll(withinMs: number): void {
    for (const [key, { change, resendAtMs }] of this.lastReports) {
      // Sent again if the new history also wants the deletion.
      if (change === "delete") this.lastReports.delete(key);
      else {
        this.lastReports.set(key, { change, fingerprint: "", resendAtMs });
        this.queue.addAfter(key, uniform(this.deps.random, 0, withinMs));
      }
    }
  }

  /**
   * The control plane gave a sign of life: schedules a probe, and all undelivered reports with it. Signs come often,
   * also while every report fails, so probes back off until a report is delivered.
   */
  retryMissed(): void {
    if (this.undelivered.size === 0 || this.probeAtMs !== undefined) return;
    const nowMs = this.deps.clock.nowMs();
    this.probeAtMs = Math.max(nowMs, this.nextProbeMs);
    for (const key of this.undelivered) {
      this.queue.forget(key);
      this.queue.addAfter(key, this.probeAtMs - nowMs);
    }
  }

  forget(key: string): void {
    this.lastReports.delete(key);
  }

  /** Forgets what was reported: another process has reported meanwhile. */
  reportAgain(): void {
    this.lastReports.clear();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.queue.run(this.options.workers, (key, workSignal) => this.report(key, workSignal), signal);
  }

  private async report(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const outcome = await this.send(key, signal);
    if (outcome.kind === "done") this.undelivered.delete(key);
    return outcome;
  }

  private async send(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const observation = this.deps.observe(key);
    const last = this.lastReports.get(key);
    if (observation === "unclear") return unclear;
    if (observation === undefined || observation.fingerprint === last?.fingerprint) return done;
    const { change, fingerprint, saysGone } = observation;
    const isDeletionWanted = this.deps.isDeletionWanted(key);
    if (change === "delete" && last === undefined && !isDeletionWanted) return done;
    if (saysGone && isDeletionWanted && !this.deps.isDeleted(key)) return done;
    this.probeIfDue();
    try {
      await this.deps.breaker.execute(() => this.sendObserved(key, observation, signal));
      this.probeBackoff.reset();
      this.nextProbeMs = 0;
    } catch (error) {
      signal.throwIfAborted();
      const failure = classifyReport(error, change);
      if (failure === undefined) throw error;
      if (failure.kind === "retry") {
        // When the control plane asked to wait, a sign of life does not cut that wait short.
        const isPostponed = failure.atLeastMs !== undefined && !(error instanceof CircuitOpenError);
        if (isPostponed || !isCausedByOutage(error)) this.undelivered.delete(key);
        else this.undelivered.add(key);
        // The key came up from its own back-off before the scheduled probe. Wait for the probe, not for the breaker,
        // which may stay open for a minute.
        if (error instanceof CircuitOpenError && this.probeAtMs !== undefined)
          return {
            kind: "again",
            afterMs: Math.min(error.retryAfterMs, this.probeAtMs - this.deps.clock.nowMs()),
          };
        return failure;
      }
    }
    if (change === "delete" && !this.deps.isDeletionWanted(key)) {
      // The key will not come up again, and remembering every deleted object would grow without limit.
      this.lastReports.delete(key);
      return done;
    }
    const resendMs = this.options.resendMs ?? resendMsDefault;
    const resendAtMs = this.deps.clock.nowMs() + uniform(this.deps.random, resendMs / 2, resendMs);
    this.lastReports.set(key, { change, fingerprint, resendAtMs });
    return done;
  }

  private async sendObserved(key: string, observation: Observation, signal: AbortSignal): Promise<void> {
    const { clock, onSent } = this.deps;
    const { change } = observation;
    const startedMs = clock.nowMs();
    const facts = () => ({ key, change, durationMs: clock.nowMs() - startedMs });
    try {
      await observation.send(signal);
      onSent(facts());
    } catch (error) {
      const isDelivered = classifyReport(error, change)?.kind === "delivered";
      if (!signal.aborted) onSent(isDelivered ? facts() : { ...facts(), error });
      throw error;
    }
  }

  private probeIfDue(): void {
    const nowMs = this.deps.clock.nowMs();
    if (this.probeAtMs === undefined || nowMs < this.probeAtMs) return;
    this.probeAtMs = undefined;
    this.nextProbeMs = nowMs + this.probeBackoff.nextMs();
    this.deps.breaker.probe();
  }
}

function isCausedByOutage(error: unknown): boolean {
  return error instanceof CircuitOpenError || isOutage(error);
}

/** Logs one event per report. */
export function reportEvents(controller: string, log: Log): (sent: SentReport) => void {
  return ({ key, change, durationMs, error: cause }) => {
    // A control plane that refuses a report has answered it; an object that it does not know is told by the resync.
    const error = isOutage(cause) ? cause : undefined;
    const refusal = cause === undefined ? change : "refused";
    const outcome = error === undefined ? refusal : "failed";
    log.event("reported", { controller, key, operation: "report", outcome, durationMs, error });
  };
}

interface ReportSenderDeps {
  readonly controlPlane: ControlPlane;
  readonly clock: Clock;
  readonly leadership?: Leadership;
}

/** Sends reports with their order. A key has one report in flight, so numbers are in the order of what was observed. */
export function createReportSender<Report extends DescMessage>(
  kind: WireKind<DescMessage, Report>,
  options: ReportingOptions | undefined,
  { controlPlane, clock, leadership }: ReportSenderDeps,
): (report: MessageInitShape<Report>, signal: AbortSignal) => Promise<void> {
  const term = () => BigInt(leadership?.term?.number ?? 0);
  const nextOrder = createReportOrders(options && { ...options, term }, clock.wallMs());
  return async (report, signal) => {
    try {
      await controlPlane.report(kind, report, signal, nextOrder());
    } catch (error) {
      // A control plane that is too old for the kind needs no reports on it.
      const isUnsupported = error instanceof ControlPlaneError && error.code === "unimplemented";
      if (!kind.isAddition || !isUnsupported) throw error;
    }
  };
}

interface ReportBreakerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "circuitBreakerRequests" | "circuitBreakerErrors">;
}

/** The circuit breaker for one controller's reports, with its metrics. */
export function createReportBreaker(
  controller: string,
  { clock, metrics, log }: ReportBreakerDeps,
): CircuitBreaker {
  // The names that existing dashboards use, for example deployment_state_update.
  const service = `${controller.replace(/s$/, "")}_state_update`;
  return new CircuitBreaker(
    { name: service },
    {
      clock,
      countsAsFailure: isOutage,
      observer: {
        onRequest: (action) => metrics.circuitBreakerRequests.inc({ service, action }),
        onFailure: (action) => metrics.circuitBreakerErrors.inc({ service, action }),
        onTransition: (previousState, state) =>
          log.warn("circuit breaker for reports changed state", { controller, previousState, state }),
      },
    },
  );
}
