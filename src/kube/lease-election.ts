// Leader election with a Lease: one of several processes leads, and the others take over when it stops or falls silent.
// The rules are in lease-state.ts; this file sends the requests.
//
// - Without the permission to use Leases, `auto` leads without one, as a process that is alone by assumption. Once it has
//   used one it does not fall back: another process may hold it.
// - stop() gives the lease up, so that a standby need not wait for it to expire.
import type { Lease, LeaseSpec } from "kubernetes-types/coordination/v1.js";
import { isAbort, withTimeout } from "../concurrency/abort.ts";
import { type Clock, sleep, type Timer } from "../concurrency/clock.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { KubeApi, PatchOperation } from "./api.ts";
import { isForbidden } from "./errors.ts";
import { type Leadership, type Term, Terms } from "./leadership.ts";
import {
  defaultLeaseTimes,
  type LeaseHolder,
  LeaseState,
  type LeaseStep,
  type LeaseTimes,
  type Moment,
} from "./lease-state.ts";
import { leases } from "./resources.ts";

export interface LeaseElectionOptions {
  readonly namespace: string;
  readonly name: string;
  /** Must be unique for each process. */
  readonly identity: string;
  /** "auto" leads without a lease where the API server forbids it. */
  readonly mode: "auto" | "required";
  readonly labels?: Readonly<Record<string, string>>;
  /** What the holder says about itself. A holder without any leaves those of its predecessor, so they must name it. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly fieldManager: string;
  readonly times?: LeaseTimes;
}

export interface LeaseElectionDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer?: LeaseObserver;
}

/** Its errors are bugs, and end the election. */
export interface LeaseObserver {
  onTerm?(number: number): void;
  onLoss?(reason: string): void;
  /** This process renewed the lease, or saw that it changed. */
  onRenewed?(): void;
  onFailure?(error: unknown): void;
}

export interface LeaseStatus {
  /** "unknown" until the first response. */
  readonly role: "unknown" | "leader" | "standby" | "alone";
  /** Who leads, as the Lease names it; undefined if nobody does, or that is unknown. */
  readonly holder: LeaseHolder | undefined;
  readonly term: number;
  /** When the current role began, by the wall clock. */
  readonly sinceWallMs: number;
  /** When the lease was last renewed by this process, or seen to change, by the monotonic clock. */
  readonly freshMs: number | undefined;
  /** Of the last request; empty if it succeeded. */
  readonly lastError: string;
}

// A request that hangs must not use up the time until the renew deadline.
const requestTimeoutMs = 4_000;

export class LeaseElection implements Leadership {
  private readonly options: LeaseElectionOptions;
  private readonly deps: LeaseElectionDeps;
  private readonly times: LeaseTimes;
  private readonly state: LeaseState;
  private readonly terms = new Terms();
  private deadline: Timer | undefined;
  private hasUsedLease = false;
  private isAlone = false;
  private lastError = "";
  private sinceWallMs = 0;
  private renewedMs: number | undefined;
  /** Resolves after the first attempt, whatever its outcome. */
  readonly tried: Promise<void>;
  private markTried: () => void = () => undefined;

  constructor(options: LeaseElectionOptions, deps: LeaseElectionDeps) {
    this.options = options;
    this.deps = deps;
    this.times = options.times ?? defaultLeaseTimes;
    this.state = new LeaseState(options.identity, this.times);
    this.tried = new Promise((resolve) => {
      this.markTried = resolve;
    });
  }

  get term(): Term | undefined {
    return this.terms.term;
  }

  whenLeading(signal: AbortSignal): Promise<Term> {
    return this.terms.whenLeading(signal);
  }

  /** How long this process may still write; infinite if it is alone, and 0 or less if it may not. */
  leftMs(): number {
    if (this.terms.term === undefined) return 0;
    return this.isAlone ? Number.POSITIVE_INFINITY : this.state.leftMs(this.moment());
  }

  status(): LeaseStatus {
    const { holder } = this.state;
    return {
      role: this.role(),
      holder,
      term: this.terms.term?.number ?? 0,
      sinceWallMs: this.sinceWallMs,
      freshMs: holder?.changedMs,
      lastError: this.lastError,
    };
  }

  /** Runs until the signal aborts. Then it no longer renews, but its term lasts until release() or the deadline. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.deps;
    for (;;) {
      await this.attempt(signal);
      this.markTried();
      const { retryMs } = this.times;
      // Candidates that look at the same time collide. A holder renews regularly.
      const waitMs = this.terms.term === undefined ? uniform(random, retryMs, retryMs * 1.5) : retryMs;
      await sleep(clock, waitMs, signal);
    }
  }

  /** Ends the term and gives the lease up, in one attempt. To be called after run() has ended and nothing is written. */
  async release(signal: AbortSignal): Promise<void> {
    const step = this.state.release(this.moment());
    this.endTerm("the agent is stopping");
    if (step !== undefined) await this.write(step, signal);
    this.state.lose();
  }

  /** Ends the term without giving the lease up. */
  abandon(): void {
    this.endTerm("the agent is stopping");
    this.state.lose();
  }

  private role(): LeaseStatus["role"] {
    if (this.isAlone) return "alone";
    if (this.terms.term !== undefined) return "leader";
    return this.hasUsedLease ? "standby" : "unknown";
  }

  private moment(): Moment {
    const { clock } = this.deps;
    return { nowMs: clock.nowMs(), wallMs: clock.wallMs() };
  }

  /** Reads or writes once. Rejects only with the signal's reason. */
  private async attempt(signal: AbortSignal): Promise<void> {
    try {
      const moment = this.moment();
      // A candidate reads first.
      if (this.state.heldTerm(moment.nowMs) === undefined) this.state.lose();
      if (this.state.next(moment).kind === "read") await this.read(signal);
      const step = this.state.next(this.moment());
      if (step.kind === "create" || step.kind === "update") await this.write(step, signal);
      this.lastError = "";
    } catch (error) {
      this.state.failed();
      if (isAbort(error, signal)) throw error;
      this.lastError = error instanceof Error ? error.message : String(error);
      if (this.mayLeadAlone(error)) this.beAlone();
      this.deps.observer?.onFailure?.(error);
    }
    this.follow();
  }

  private async read(signal: AbortSignal): Promise<void> {
    const { api, clock } = this.deps;
    const { namespace, name } = this.options;
    const lease = await this.limited(signal, (one) => api.get(leases, { namespace, name }, {}, one));
    this.use();
    this.state.read(lease, clock.nowMs());
  }

  private async write(
    step: Extract<LeaseStep, { kind: "create" | "update" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const sent = this.moment();
    const lease = await this.limited(signal, (one) => this.send(step, one));
    this.use();
    this.state.wrote(lease, sent, this.deps.clock.nowMs());
  }

  private send(step: Extract<LeaseStep, { kind: "create" | "update" }>, signal: AbortSignal): Promise<Lease> {
    const { api } = this.deps;
    const { fieldManager } = this.options;
    if (step.kind === "create") return api.create(leases, this.manifest(step.spec), { fieldManager }, signal);
    // It carries the resourceVersion of the lease that it is based on.
    const operations = [
      ...this.annotate(step.lease),
      { op: "add", path: "/spec", value: step.spec } as const,
    ];
    return api.patch(leases, step.lease, operations, { fieldManager }, signal);
  }

  private manifest(spec: LeaseSpec): Lease {
    const { namespace, name, labels = {}, annotations = {} } = this.options;
    const metadata = { namespace, name, labels: { ...labels }, annotations: { ...annotations } };
    return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
  }

  /** Only what the lease does not have yet. */
  private annotate({ metadata }: Lease): readonly PatchOperation[] {
    const { annotations = {} } = this.options;
    const current = metadata?.annotations ?? {};
    if (Object.entries(annotations).every(([name, value]) => current[name] === value)) return [];
    return [{ op: "add", path: "/metadata/annotations", value: { ...current, ...annotations } }];
  }

  private limited<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withTimeout(this.deps.clock, requestTimeoutMs, signal, work);
  }

  private mayLeadAlone(error: unknown): boolean {
    return isForbidden(error) && this.options.mode === "auto" && !this.hasUsedLease;
  }

  private beAlone(): void {
    if (this.isAlone) return;
    this.isAlone = true;
    this.beginTerm(0);
  }

  /** The API server lets this process use the Lease. */
  private use(): void {
    this.hasUsedLease = true;
    if (!this.isAlone) return;
    this.isAlone = false;
    this.endTerm("krane may use the Lease now");
  }

  /** Makes the term that of the state. */
  private follow(): void {
    if (this.isAlone) return;
    const { nowMs } = this.moment();
    const changedMs = this.state.holder?.changedMs;
    if (changedMs !== undefined && changedMs !== this.renewedMs) this.deps.observer?.onRenewed?.();
    this.renewedMs = changedMs;
    const held = this.state.heldTerm(nowMs);
    const { term } = this.terms;
    if (term !== undefined && held !== term.number) this.endTerm(this.lossReason());
    if (held === undefined) return;
    if (this.terms.term === undefined) this.beginTerm(held);
    this.deadline?.cancel();
    const leftMs = (this.state.deadlineMs ?? nowMs) - nowMs;
    this.deadline = this.deps.clock.setTimer(leftMs, () => this.onDeadline());
  }

  private onDeadline(): void {
    this.deadline = undefined;
    if (this.state.heldTerm(this.deps.clock.nowMs()) === undefined) this.endTerm(this.lossReason());
    else this.follow();
  }

  private lossReason(): string {
    const { holder } = this.state;
    if (holder !== undefined && !holder.isSelf) return `${holder.identity} holds the lease`;
    return this.lastError === "" ? "the lease expired" : `the lease cannot be renewed: ${this.lastError}`;
  }

  private beginTerm(number: number): void {
    this.sinceWallMs = this.deps.clock.wallMs();
    this.terms.begin(number);
    this.deps.observer?.onTerm?.(number);
  }

  private endTerm(reason: string): void {
    this.deadline?.cancel();
    this.deadline = undefined;
    if (this.terms.term === undefined) return;
    this.sinceWallMs = this.deps.clock.wallMs();
    this.terms.end(reason);
    this.deps.observer?.onLoss?.(reason);
  }
}
