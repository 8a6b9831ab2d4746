// Decides what a candidate for a Lease does next, and for how long it may write. Pure: it gets the time and the server's
// responses as arguments.
//
// Two processes never believe at the same time that they lead, as long as their monotonic clocks run at about the same
// rate. Their wall clocks may differ by any amount:
// - A holder counts its time from the moment when it *sent* the write that succeeded.
// - A candidate counts from the moment when it *received* a record that differs from the one before. It never reads the
//   times in the record, which are from another machine's clock.
// - Every write carries the resourceVersion that it is based on, so a late or repeated one cannot overwrite another's.
import type { Lease, LeaseSpec } from "kubernetes-types/coordination/v1.js";

export interface LeaseTimes {
  /** A candidate takes a lease that has not changed for this long. */
  readonly durationMs: number;
  /** A holder that cannot renew its lease stops after this long. */
  readonly renewDeadlineMs: number;
  /** How often a holder renews, and a candidate looks. */
  readonly retryMs: number;
}

/** Those of Kubernetes' own components. */
export const defaultLeaseTimes: LeaseTimes = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

// Clocks do not run at exactly the same rate. Each side waits this much longer, or stops this much earlier.
const clockMarginMs = 250;

export type LeaseStep =
  | { readonly kind: "read" }
  | { readonly kind: "wait" }
  | { readonly kind: "create"; readonly spec: LeaseSpec }
  /** Takes it over, or renews it. `lease` is the one that the write is based on. */
  | { readonly kind: "update"; readonly lease: Lease; readonly spec: LeaseSpec };

interface Seen {
  /** Undefined if the server has no such lease. */
  readonly lease: Lease | undefined;
  /** Changes with every write of the lease. */
  readonly revision: string;
  /** When this revision was first received. */
  readonly sinceMs: number;
}

interface Held {
  readonly term: number;
  /** When the last successful write was sent. */
  readonly renewedMs: number;
  /** The same by the wall clock, which also runs while the machine is suspended. */
  readonly renewedWallMs: number;
  readonly acquireTime: string;
}

export interface Moment {
  readonly nowMs: number;
  readonly wallMs: number;
}

export class LeaseState {
  private readonly identity: string;
  private readonly times: LeaseTimes;
  private seen: Seen | undefined;
  private held: Held | undefined;
  private lastTerm = 0;
  /** The record may not be the one seen last: a write failed, or its response was lost. */
  private mustRead = true;

  constructor(identity: string, times: LeaseTimes) {
    this.identity = identity;
    this.times = times;
  }

  /** The term that this process holds; undefined if it does not, or could not renew in time. */
  heldTerm(nowMs: number): number | undefined {
    const { held } = this;
    return held && nowMs < held.renewedMs + this.times.renewDeadlineMs ? held.term : undefined;
  }

  /** When the term ends unless it is renewed. */
  get deadlineMs(): number | undefined {
    return this.held && this.held.renewedMs + this.times.renewDeadlineMs;
  }

  /** How long no other process can hold the lease. 0 or less: another one may. */
  leftMs({ nowMs, wallMs }: Moment): number {
    const { held } = this;
    if (held === undefined) return 0;
    // The monotonic clock stands still while the machine is suspended. A wall clock that was set forward costs one
    // renewal.
    const elapsedMs = Math.max(nowMs - held.renewedMs, wallMs - held.renewedWallMs);
    return this.times.durationMs - clockMarginMs - elapsedMs;
  }

  get holder(): LeaseHolder | undefined {
    const { seen, held } = this;
    const spec = seen?.lease?.spec;
    const identity = spec?.holderIdentity ?? "";
    if (seen === undefined || identity === "") return undefined;
    const isSelf = held !== undefined;
    const annotations = seen.lease?.metadata?.annotations ?? {};
    return { identity, isSelf, acquireTime: spec?.acquireTime ?? "", changedMs: seen.sinceMs, annotations };
  }

  next({ nowMs, wallMs }: Moment): LeaseStep {
    const { seen, held } = this;
    if (seen === undefined || this.mustRead) return { kind: "read" };
    const { lease } = seen;
    if (held !== undefined && lease !== undefined)
      return { kind: "update", lease, spec: this.spec(held.term, held.acquireTime, wallMs) };
    if (!this.isFree(seen, nowMs)) return { kind: "wait" };
    const spec = this.spec(this.lastTerm + 1, microTime(wallMs), wallMs);
    return lease === undefined ? { kind: "create", spec } : { kind: "update", lease, spec };
  }

  /** The response to a read; undefined if the server has no such lease. */
  read(lease: Lease | undefined, nowMs: number): void {
    this.mustRead = false;
    const revision = `${lease?.metadata?.uid} ${lease?.metadata?.resourceVersion}`;
    const sinceMs = this.seen?.revision === revision ? this.seen.sinceMs : nowMs;
    this.seen = { lease, revision, sinceMs };
    this.lastTerm = Math.max(this.lastTerm, lease?.spec?.leaseTransitions ?? 0);
    // Also without a lease: another process may create it.
    if (lease?.spec?.holderIdentity !== this.identity) this.held = undefined;
  }

  /** The response to a successful write. `sent`: the moment before it was sent. */
  wrote(lease: Lease, sent: Moment, nowMs: number): void {
    this.read(lease, nowMs);
    const { spec } = lease;
    this.held = {
      term: spec?.leaseTransitions ?? 0,
      renewedMs: sent.nowMs,
      renewedWallMs: sent.wallMs,
      acquireTime: spec?.acquireTime ?? microTime(sent.wallMs),
    };
  }

  /** A write failed, or its outcome is unknown. */
  failed(): void {
    this.mustRead = true;
  }

  /** The renew deadline has passed: this process no longer leads, and has to take the lease again. */
  lose(): void {
    this.held = undefined;
    this.mustRead = true;
  }

  /** What gives the lease up, if this process holds it. */
  release({ wallMs }: Moment): Extract<LeaseStep, { kind: "update" }> | undefined {
    const { seen, held } = this;
    if (held === undefined || seen?.lease === undefined) return undefined;
    const spec = { ...this.spec(held.term, held.acquireTime, wallMs), holderIdentity: "" };
    return { kind: "update", lease: seen.lease, spec };
  }

  private isFree({ lease, sinceMs }: Seen, nowMs: number): boolean {
    const { holderIdentity = "", leaseDurationSeconds = 0 } = lease?.spec ?? {};
    // A lease that was there and is gone was deleted by hand, and its holder may not know it yet.
    if (holderIdentity === "" && (lease !== undefined || this.lastTerm === 0)) return true;
    // The response to this process's own write was lost.
    if (holderIdentity === this.identity) return true;
    const durationMs = Math.max(this.times.durationMs, leaseDurationSeconds * 1_000);
    return nowMs >= sinceMs + durationMs + clockMarginMs;
  }

  private spec(term: number, acquireTime: string, wallMs: number): LeaseSpec {
    return {
      holderIdentity: this.identity,
      leaseDurationSeconds: Math.ceil(this.times.durationMs / 1_000),
      acquireTime,
      renewTime: microTime(wallMs),
      leaseTransitions: term,
    };
  }
}

export interface LeaseHolder {
  readonly identity: string;
  readonly isSelf: boolean;
  /** As the holder wrote it, by its own clock. */
  readonly acquireTime: string;
  /** When this process saw the last change of the record, by its monotonic clock. */
  readonly changedMs: number;
  /** Those of the Lease, which may still be those of an earlier holder. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** The format of Kubernetes' MicroTime. */
function microTime(wallMs: number): string {
  // biome-ignore lint/style/noRestrictedGlobals: it formats a time that comes from the clock.
  return new Date(wallMs).toISOString().replace("Z", "000Z");
}
