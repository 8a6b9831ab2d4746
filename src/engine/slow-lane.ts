// One shared back-off for all objects behind the same obstacle: a terminating namespace, a quota, a missing
// permission. Without it, a hundred objects would retry a hundred times as often as one. Failures of the server itself
// count only if several objects meet them in a row, because one bad object must not delay the others.
import { type BackoffOptions, backoffDelayMs } from "../concurrency/backoff.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import type { Log } from "../telemetry/log.ts";

// More than a cluster has namespaces. When full, all are dropped and learned again.
const lanesMax = 10_000;

// Failures of the server in a row, by at least two objects, that close a lane.
const strugglesMax = 3;

interface Lane {
  failures: number;
  openMs: number;
  reason: string;
  /** Failures of the server in a row. */
  struggles: number;
  /** The first object that met one, and whether another one did too. */
  firstKey: string | undefined;
  hasOthers: boolean;
}

export interface LaneWait {
  readonly waitMs: number;
  readonly reason: string;
}

export class SlowLane {
  private readonly backoff: BackoffOptions;
  private readonly deps: { readonly clock: Clock; readonly random: Random };
  private readonly lanes = new Map<string, Lane>();

  constructor(backoff: BackoffOptions, deps: { readonly clock: Clock; readonly random: Random }) {
    this.backoff = backoff;
    this.deps = deps;
  }

  wait(scope: string): LaneWait | undefined {
    const lane = this.lanes.get(scope);
    const waitMs = (lane?.openMs ?? 0) - this.deps.clock.nowMs();
    return lane !== undefined && waitMs > 0 ? { waitMs, reason: lane.reason } : undefined;
  }

  failed(scope: string, reason: string): LaneWait {
    // This request was sent before the lane was closed; it is not one more failure.
    const closed = this.wait(scope);
    if (closed !== undefined) return closed;
    const lane = this.laneOf(scope);
    const waitMs = backoffDelayMs(this.backoff, lane.failures, this.deps.random);
    lane.failures += 1;
    lane.openMs = this.deps.clock.nowMs() + waitMs;
    lane.reason = reason;
    return { waitMs, reason };
  }

  /** The server failed on this object. Returns how long all objects of the scope wait; undefined if only this one does. */
  struggled(scope: string, key: string, reason: string): LaneWait | undefined {
    const lane = this.laneOf(scope);
    lane.struggles += 1;
    lane.firstKey ??= key;
    lane.hasOthers ||= lane.firstKey !== key;
    return lane.struggles >= strugglesMax && lane.hasOthers ? this.failed(scope, reason) : undefined;
  }

  succeeded(scope: string): void {
    this.lanes.delete(scope);
  }

  private laneOf(scope: string): Lane {
    const known = this.lanes.get(scope);
    if (known !== undefined) return known;
    if (this.lanes.size >= lanesMax) this.lanes.clear();
    const lane = { failures: 0, openMs: 0, reason: "", struggles: 0, firstKey: undefined, hasOthers: false };
    this.lanes.set(scope, lane);
    return lane;
  }
}

/** Logs that a namespace is slow. */
export function slowNamespaceWarning(controller: string, log: Log): (namespace: string) => void {
  return (namespace) =>
    log.warn("objects of a namespace take long to reconcile; it gets fewer workers", {
      controller,
      namespace,
    });
}
