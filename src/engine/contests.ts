// Deals with programs that keep undoing what krane does to an object: krane answers less and less often (write-pace.ts)
// and says who it is (contest.ts): in the status of the key, in the log and in an event.
import type { Clock } from "../concurrency/clock.ts";
import { notify } from "../concurrency/notify.ts";
import type { KubeApi } from "../kube/api.ts";
import { events } from "../kube/resources.ts";
import type { ObjectRef, ResourceKind } from "../kube/types.ts";
import { fieldManager } from "../model/labels.ts";
import type { Log } from "../telemetry/log.ts";
import { type Contest, type ContestFacts, contestedEvent } from "./contest.ts";
import { WritePace } from "./write-pace.ts";

export interface ContestsDeps {
  /** The controller's name. */
  readonly controller: string;
  readonly api: Pick<KubeApi, "get" | "create">;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ContestedOutcome {
  readonly kind: "contested";
  readonly reason: string;
  readonly waitMs: number;
}

interface ContestedObject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  /** Kind, namespace and name. */
  readonly name: string;
  /** What is to be written: the hash of a manifest, or `deletion`. */
  readonly wanted: string;
}

interface ContestedProgress {
  /** The number of the desired state in the store. */
  readonly state: number;
  contest: Contest | undefined;
}

// A fight that goes on is announced again after this long.
const announceAgainMs = 600_000;

export class Contests {
  private readonly deps: ContestsDeps;
  private readonly pace: WritePace;
  /** What was last announced about each key, and when. */
  private readonly announced = new Map<string, { readonly reason: string; readonly atMs: number }>();

  constructor(deps: ContestsDeps) {
    this.deps = deps;
    this.pace = new WritePace(deps.clock);
  }

  /**
   * Call it before a write. If something keeps undoing this write, it notes in `progress` who does, and returns how long
   * to wait, if at all.
   */
  async check(
    object: ContestedObject,
    progress: ContestedProgress,
    describe: (facts: ContestFacts) => Contest,
    signal: AbortSignal,
  ): Promise<ContestedOutcome | undefined> {
    const { kind, ref, name, wanted } = object;
    const { state } = progress;
    const fight = this.pace.fightOf(name, wanted, state);
    if (fight === undefined) return undefined;
    if (fight.contest === undefined) {
      const options = { resourceVersion: "0", detail: "metadata" } as const;
      const found = await this.deps.api.get(kind, ref, options, signal);
      fight.contest = describe({ kind, ref, name, sinceMs: fight.sinceMs, found });
    }
    const { contest } = fight;
    progress.contest ??= contest;
    const waitMs = this.pace.waitMs(name, wanted, state, contest.about);
    return waitMs > 0 ? { kind: "contested", reason: contest.reason, waitMs } : undefined;
  }

  wrote(name: string, sent: string, state: number): void {
    this.pace.wrote(name, sent, state);
  }

  /** Writes a line and an event when a fight begins or changes, and from time to time while it goes on. */
  announce(key: string, contest: Contest, signal: AbortSignal): void {
    const { api, clock, log, controller } = this.deps;
    const { reason } = contest;
    const last = this.announced.get(key);
    if (last?.reason === reason && clock.nowMs() - last.atMs < announceAgainMs) return;
    this.announced.set(key, { reason, atMs: clock.nowMs() });
    log.warn("another client keeps undoing what krane does", { controller, key, reason });
    notify(() => api.create(events, contestedEvent(contest, clock.wallMs()), { fieldManager }, signal));
  }

  /** The key will not come back. */
  forget(key: string): void {
    this.announced.delete(key);
  }
}
