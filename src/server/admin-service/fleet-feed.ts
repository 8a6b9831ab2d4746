// The stream that follows all regions. Any number of browsers share one read of the database per half second; each gets what is new
// since its own last message.
import { create } from "@bufbuild/protobuf";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import {
  type ObjectRef,
  type RegionNews,
  RegionNewsSchema,
  type WatchFleetResponse,
  WatchFleetResponseSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { NumberedEntry, RegionMark, Store } from "../store.ts";
import { refOf } from "./object-refs.ts";

const readEveryMs = 500;
/** How long a quiet stream waits before it shows that it is alive. */
const aliveEveryMs = 5_000;
const changesMax = 200;

export class FleetFeed {
  private readonly store: Pick<Store, "marks" | "historySince">;
  private readonly clock: Clock;
  private round: { readonly atMs: number; readonly marks: Promise<readonly RegionMark[]> } | undefined;
  /** The changes that watchers asked for in this round, by region and position. */
  private changes = new Map<string, Promise<Changed>>();

  constructor({
    store,
    clock,
  }: { readonly store: Pick<Store, "marks" | "historySince">; readonly clock: Clock }) {
    this.store = store;
    this.clock = clock;
  }

  async *watch(signal: AbortSignal): AsyncGenerator<WatchFleetResponse> {
    let seen: ReadonlyMap<string, RegionMark> = new Map();
    let saidAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      const marks = await this.marks();
      const regions = await this.newsSince(seen, marks);
      seen = new Map(marks.map((mark) => [mark.region, mark]));
      const nowMs = this.clock.nowMs();
      if (regions.length > 0 || nowMs - saidAtMs >= aliveEveryMs) {
        saidAtMs = nowMs;
        yield create(WatchFleetResponseSchema, { nowMs: BigInt(Math.trunc(this.clock.wallMs())), regions });
      }
      await sleep(this.clock, readEveryMs, signal).catch(() => undefined);
    }
  }

  private marks(): Promise<readonly RegionMark[]> {
    const atMs = this.clock.nowMs();
    // A little less than the pause, so that a watcher never gets the read that it had before.
    if (this.round === undefined || atMs - this.round.atMs >= readEveryMs * 0.8) {
      this.round = { atMs, marks: this.store.marks() };
      this.changes = new Map();
    }
    return this.round.marks;
  }

  private async newsSince(
    seen: ReadonlyMap<string, RegionMark>,
    marks: readonly RegionMark[],
  ): Promise<RegionNews[]> {
    const news: RegionNews[] = [];
    for (const mark of marks) {
      const { region, newestEntry, heartbeatAtMs, stateAtMs } = mark;
      const before = seen.get(region);
      const isSame =
        before?.newestEntry === newestEntry &&
        before.heartbeatAtMs === heartbeatAtMs &&
        before.stateAtMs === stateAtMs;
      if (isSame) continue;
      const changed = before === undefined ? nothing : await this.changedSince(before, mark);
      news.push(
        create(RegionNewsSchema, {
          region,
          heartbeatAtMs: BigInt(Math.trunc(heartbeatAtMs)),
          stateAtMs: BigInt(Math.trunc(stateAtMs)),
          changed: [...changed.refs],
          incomplete: changed.isIncomplete,
        }),
      );
    }
    return news;
  }

  private changedSince(
    { newestEntry: from }: RegionMark,
    { region, newestEntry: to }: RegionMark,
  ): Promise<Changed> {
    if (from === to) return Promise.resolve(nothing);
    // The history of a restored database starts again at a lower number.
    if (to < from) return Promise.resolve({ refs: [], isIncomplete: true });
    const key = `${region} ${from}`;
    const known = this.changes.get(key) ?? this.loadChanged(region, from);
    this.changes.set(key, known);
    return known;
  }

  private async loadChanged(region: string, from: bigint): Promise<Changed> {
    const { entries } = await this.store.historySince(region, from, { limit: changesMax });
    return { refs: refsOf(region, entries), isIncomplete: entries.length === changesMax };
  }
}

interface Changed {
  readonly refs: readonly ObjectRef[];
  readonly isIncomplete: boolean;
}

const nothing: Changed = { refs: [], isIncomplete: false };

/** Each object once. */
function refsOf(region: string, entries: readonly NumberedEntry[]): readonly ObjectRef[] {
  const byKey = new Map(entries.map(({ kind, id }) => [`${kind}/${id}`, refOf({ region, kind, id })]));
  return [...byKey.values()];
}
