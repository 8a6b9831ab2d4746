// Limits how many people read logs at the same time: in all, in one region and with one name. Whoever is refused is told when
// to come back, each a little later than the one before, so that a thousand do not come back in the same second.
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../../concurrency/clock.ts";

export interface AdmissionLimits {
  readonly readersMax: number;
  readonly perRegionMax: number;
  readonly perNameMax: number;
}

/** An agent serves twenty requests at a time, and an app that is being released needs two. */
export const readerLimits: AdmissionLimits = { readersMax: 100, perRegionMax: 15, perNameMax: 10 };

const refusedPerSecond = 2;
const waitMinSeconds = 5;
const waitMaxSeconds = 600;

export class ReaderAdmission {
  private readonly limits: AdmissionLimits;
  private readonly clock: Clock;
  private readonly byRegion = new Map<string, number>();
  private readonly byName = new Map<string, number>();
  private readers = 0;
  /** When the last of those who were refused was told to come back. */
  private lineEndsMs = 0;

  constructor(limits: AdmissionLimits, deps: { readonly clock: Clock }) {
    this.limits = limits;
    this.clock = deps.clock;
  }

  get count(): number {
    return this.readers;
  }

  /** Returns the function that leaves. Throws `resource_exhausted` with a hint when to retry. */
  enter(region: string, name: string): () => void {
    const { readersMax, perRegionMax, perNameMax } = this.limits;
    if (this.readers >= readersMax) throw this.refusal(`${readersMax} logs are being read on this server`);
    if ((this.byRegion.get(region) ?? 0) >= perRegionMax)
      throw this.refusal(`${perRegionMax} logs of region ${region} are being read`);
    if ((this.byName.get(name) ?? 0) >= perNameMax)
      throw this.refusal(`${name} is reading ${perNameMax} logs`);
    this.readers += 1;
    add(this.byRegion, region, 1);
    add(this.byName, name, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.readers -= 1;
      add(this.byRegion, region, -1);
      add(this.byName, name, -1);
    };
  }

  private refusal(reason: string): ConnectError {
    const nowMs = this.clock.nowMs();
    this.lineEndsMs = Math.max(this.lineEndsMs, nowMs) + 1_000 / refusedPerSecond;
    const inLine = Math.ceil((this.lineEndsMs - nowMs) / 1_000);
    const seconds = Math.min(waitMaxSeconds, waitMinSeconds + inLine);
    const message = `${reason}, which is the limit; retry in ${seconds} s`;
    return new ConnectError(message, Code.ResourceExhausted, { "retry-after": String(seconds) });
  }
}

function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
