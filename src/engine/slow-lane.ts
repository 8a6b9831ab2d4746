// One shared back-off for all objects behind the same obstacle: a terminating namespace, a quota, a missing
// permission. Without it, a hundred objects would retry a hundred times as often as one.
import { type BackoffOptions, backoffDelayMs } from "../concurrency/backoff.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";

// More than a cluster has namespaces. When full, all are dropped and learned again.
const lanesMax = 10_000;

interface Lane {
  failures: number;
  openMs: number;
  reason: string;
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
    if (this.lanes.size >= lanesMax) this.lanes.clear();
    const failures = this.lanes.get(scope)?.failures ?? 0;
    const waitMs = backoffDelayMs(this.backoff, failures, this.deps.random);
    this.lanes.set(scope, { failures: failures + 1, openMs: this.deps.clock.nowMs() + waitMs, reason });
    return { waitMs, reason };
  }

  succeeded(scope: string): void {
    this.lanes.delete(scope);
  }
}
