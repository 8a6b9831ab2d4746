// Paces repeated writes of the same state of an object: repairs of what another program changes, creations of what it
// deletes, deletions of what it creates again. Without it, krane would answer such a program as fast as it acts.
//
// - The first few repeated writes happen at once. After that each pause is twice as long as the last one, as long as the
//   other program acts before the pause is over.
// - A new desired state of the key starts over, so it never waits.
import type { Clock } from "../concurrency/clock.ts";
import type { Contest } from "./contest.ts";

// Another program is assumed to fight krane after this many repeated writes.
const repeatsFree = 3;
const pauseFirstMs = 10_000;
/** A repair may wait long: the object exists. */
const repairPauseMaxMs = 600_000;
/** Something that is missing, or that is still there, is worse. */
const presencePauseMaxMs = 60_000;
// A fight is over when nothing was undone for this long, beyond the pause.
const forgetMs = 600_000;

// More than the objects krane has in a cluster; the least recently written are dropped first.
const writesMax = 50_000;

/** What was written, if it was a deletion; otherwise it is the hash of the manifest. */
export const deletion = "deletion";

interface LastWrite {
  readonly sent: string;
  /** The number of the key's desired state in the store. */
  readonly state: number;
  readonly repeats: number;
  readonly atMs: number;
  readonly sinceMs: number;
  fight: Fight | undefined;
}

export interface Fight {
  /** Wall time of the first repeated write. */
  readonly sinceMs: number;
  /** What is known of the other side. It is looked up once per write. */
  contest: Contest | undefined;
}

export class WritePace {
  private readonly clock: Clock;
  private readonly writes = new Map<string, LastWrite>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Defined if this very state was written several times, and something keeps undoing it. */
  fightOf(object: string, wanted: string, state: number): Fight | undefined {
    const last = this.lastOf(object, wanted, state);
    if (last === undefined || last.repeats < repeatsFree || this.isForgotten(last)) return undefined;
    last.fight ??= { sinceMs: last.sinceMs, contest: undefined };
    return last.fight;
  }

  /** How long to wait before the next write of the same state; 0 for any other. */
  waitMs(object: string, wanted: string, state: number, what: "repair" | "presence"): number {
    const last = this.lastOf(object, wanted, state);
    if (last === undefined) return 0;
    const maxMs = what === "repair" ? repairPauseMaxMs : presencePauseMaxMs;
    return Math.max(0, last.atMs + Math.min(maxMs, pauseOf(last)) - this.clock.nowMs());
  }

  wrote(object: string, sent: string, state: number): void {
    const last = this.lastOf(object, sent, state);
    const isRepeated = last !== undefined && !this.isForgotten(last);
    const repeats = last === undefined ? 0 : isRepeated ? this.repeatsAfter(last) : 1;
    const sinceMs = isRepeated && last.repeats > 0 ? last.sinceMs : this.clock.wallMs();
    this.writes.delete(object);
    this.writes.set(object, {
      sent,
      state,
      repeats,
      atMs: this.clock.nowMs(),
      sinceMs,
      fight: undefined,
    });
    if (this.writes.size <= writesMax) return;
    for (const oldest of this.writes.keys()) {
      this.writes.delete(oldest);
      return;
    }
  }

  private lastOf(object: string, sent: string, state: number): LastWrite | undefined {
    const last = this.writes.get(object);
    return last?.sent === sent && last.state === state ? last : undefined;
  }

  /** A program that acts less often than krane would wait is answered at once. */
  private repeatsAfter(last: LastWrite): number {
    const { repeats, atMs } = last;
    const isPatient = this.clock.nowMs() - atMs >= 2 * pauseOf(last);
    return repeats >= repeatsFree && isPatient ? Math.max(repeatsFree, repeats - 1) : repeats + 1;
  }

  private isForgotten(last: LastWrite): boolean {
    return this.clock.nowMs() - last.atMs >= forgetMs + pauseOf(last);
  }
}

function pauseOf({ repeats }: LastWrite): number {
  return repeats < repeatsFree
    ? 0
    : Math.min(repairPauseMaxMs, pauseFirstMs * 2 ** Math.min(repeats - repeatsFree, 16));
}
