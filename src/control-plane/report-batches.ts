// Sends the reports of a controller, several in one call while there are many.
//
// - A report that comes alone is sent at once, by itself. The next ones are gathered for a moment, or until a call is full.
//   The more the last call had, the longer they are gathered: in a flood, calls are what costs.
// - Each report succeeds or fails on its own. A call that fails, or takes too long, perhaps because of what is in it is
//   repeated with each report by itself, so that one bad report takes no other with it.
// - A server without calls for several reports gets each by itself.
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock, Timer } from "../concurrency/clock.ts";
import { ControlPlaneError } from "./error.ts";
import type { ReportOrder } from "./report-order.ts";

export interface OrderedReport<R> {
  readonly report: R;
  readonly order: ReportOrder | undefined;
}

export interface ReportBatchesDeps<R> {
  readonly clock: Clock;
  /** The number of the connection. A new one may go to another server. */
  generation(): number;
  sendOne(report: OrderedReport<R>, signal: AbortSignal): Promise<void>;
  /** Returns the positions of those whose object does not exist; undefined if the server has no such call. */
  sendMany(reports: readonly OrderedReport<R>[], signal: AbortSignal): Promise<readonly number[] | undefined>;
}

interface Waiting<R> extends OrderedReport<R> {
  readonly signal: AbortSignal;
  /** It was part of a call that was refused. */
  isAlone: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** How many reports wait at most for one call. */
export const reportsPerCall = 32;
const callsMax = 8;
// A report waits for others this long for each report in the last call, and no longer than the maximum.
const gatherMs = 25;
const gatherMsMax = 100;
// Shorter than the deadline of a report that is sent by itself: one that hangs must not hold up the others for as long.
const patienceMs = 2_000;

export class ReportBatches<R> {
  private readonly deps: ReportBatchesDeps<R>;
  private waiting: Waiting<R>[] = [];
  private calls = 0;
  private lastCallMs = Number.NEGATIVE_INFINITY;
  private lastCallSize = 1;
  private timer: Timer | undefined;
  private isDue = false;
  /** The connection whose server has no calls for several reports. */
  private refusedAt: number | undefined;

  constructor(deps: ReportBatchesDeps<R>) {
    this.deps = deps;
  }

  send(report: OrderedReport<R>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const end = (settle: () => void) => () => {
        stopListening();
        settle();
      };
      const waiting: Waiting<R> = {
        ...report,
        signal,
        isAlone: false,
        resolve: end(resolve),
        reject: (error) => end(() => reject(error))(),
      };
      const stopListening = onAbort(signal, () => {
        this.waiting = this.waiting.filter((one) => one !== waiting);
        if (this.waiting.length === 0) this.cancelTimer();
        reject(signal.reason);
      });
      this.waiting.push(waiting);
      this.soon();
    });
  }

  /** Reports that are sent in the same moment share a call. */
  private soon(): void {
    if (this.isDue) return;
    this.isDue = true;
    queueMicrotask(() => {
      this.isDue = false;
      this.next();
    });
  }

  private next(): void {
    const { clock } = this.deps;
    while (this.waiting.length > 0 && this.calls < callsMax) {
      const waitMs = this.lastCallMs + Math.min(gatherMs * this.lastCallSize, gatherMsMax) - clock.nowMs();
      const mayGather = this.hasCalls && this.waiting[0]?.isAlone === false;
      if (waitMs > 0 && mayGather && this.waiting.length < reportsPerCall) {
        this.timer ??= clock.setTimer(waitMs, () => {
          this.timer = undefined;
          this.next();
        });
        return;
      }
      this.cancelTimer();
      this.lastCallMs = clock.nowMs();
      this.calls += 1;
      const reports = this.take();
      this.lastCallSize = reports.length;
      void this.deliver(reports).finally(() => {
        this.calls -= 1;
        this.next();
      });
    }
  }

  private get hasCalls(): boolean {
    return this.refusedAt === undefined || this.refusedAt !== this.deps.generation();
  }

  private cancelTimer(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private take(): readonly Waiting<R>[] {
    const [first] = this.waiting;
    if (first === undefined) return [];
    const differs = (one: Waiting<R>) => one !== first && !canShareCall(first, one);
    const end = this.hasCalls ? this.waiting.findIndex(differs) : 1;
    return this.waiting.splice(0, Math.min(end < 0 ? reportsPerCall : end, reportsPerCall));
  }

  /** Never rejects. */
  private async deliver(reports: readonly Waiting<R>[]): Promise<void> {
    const [first, ...others] = reports;
    if (first === undefined) return;
    try {
      if (others.length === 0) {
        await this.deps.sendOne(first, first.signal);
        first.resolve();
      } else await this.deliverMany(reports, first.signal);
    } catch (error) {
      if (others.length > 0 && mayBeOneReport(error)) this.sendEachAlone(reports);
      else for (const one of reports) one.reject(error);
    }
  }

  private async deliverMany(reports: readonly Waiting<R>[], signal: AbortSignal): Promise<void> {
    const generation = this.deps.generation();
    const notFound = await withTimeout(this.deps.clock, patienceMs, signal, (inner) =>
      this.deps.sendMany(reports, inner),
    );
    if (notFound === undefined) {
      this.refusedAt = generation;
      this.sendEachAlone(reports);
      return;
    }
    const missing = new Set(notFound);
    for (const [position, one] of reports.entries())
      if (missing.has(position))
        one.reject(
          new ControlPlaneError("not_found", "the control plane does not have the object of this report", {
            reach: "answered",
          }),
        );
      else one.resolve();
  }

  private sendEachAlone(reports: readonly Waiting<R>[]): void {
    for (const one of reports) one.isAlone = true;
    this.waiting.unshift(...reports.filter(({ signal }) => !signal.aborted));
  }
}

function canShareCall<R>(one: Waiting<R>, other: Waiting<R>): boolean {
  if (one.isAlone || other.isAlone || one.signal !== other.signal) return false;
  return one.order?.term === other.order?.term && one.order?.instance === other.order?.instance;
}

/** These concern the server or the caller, whatever is reported. */
const general: ReadonlySet<string> = new Set([
  "unavailable",
  "canceled",
  "unauthenticated",
  "permission_denied",
]);

/** One report may also be what the call waited for. */
function mayBeOneReport(error: unknown): boolean {
  if (error instanceof DeadlineError) return true;
  return error instanceof ControlPlaneError && error.reach === "answered" && !general.has(error.code);
}
