// Decides which waiting item starts next, so that no group of items (the keys of one namespace) takes all workers.
//
// - Groups take turns; within a group, the first to come is the first to start.
// - A group may use a quarter of the workers. While its items end quickly it may use more, up to all but a reserve; that
//   reserve is kept for groups of which nothing is in flight. So a group that turns slow leaves workers for others.
// - A group is slow if one of its items took long or is still in flight after that time, and for half a minute after the
//   last such item. Slow groups together may use half of the workers.
// - Fresh items go before resync items, but never so long that resync starves.
//
// Without groups, all items are in one, which may use every worker. Every operation is O(1), except the counts, which are
// O(groups).
import { Fifo, type FifoItem } from "./fifo.ts";

/** "fresh": something changed. "resync": checked for safety, with lower priority. */
export type WorkPriority = "fresh" | "resync";
const priorities = ["fresh", "resync"] as const;

export interface FairShareOptions {
  /** After this many fresh items in a row, one resync item is started. */
  readonly freshBurst: number;
  readonly isGrouped: boolean;
  /** An item that is in flight for this long makes its group slow. */
  readonly slowMs: number;
  nowMs(): number;
  /** Called when a group becomes slow, at most once a minute: when all groups do, one line in the log is enough. */
  onSlow(group: string): void;
}

/** The links belong to the list that the item is in: waiting or in flight. */
export interface FairItem<T> extends FifoItem<T> {
  readonly group: string;
  priority: WorkPriority;
  waitingSinceMs: number;
  startedMs: number;
}

/**
 * What a group may do now. "idle": nothing of it is in flight. "narrow": it uses less than its share. "wide": it uses more,
 * because it is fast. "full": nothing more may start.
 */
type Standing = "idle" | "narrow" | "slow" | "wide" | "full";
type Ready = Exclude<Standing, "full">;

interface Seat<T extends FairItem<T>> extends FifoItem<Seat<T>> {
  readonly group: Group<T>;
  ring: Fifo<Seat<T>> | undefined;
}

interface Group<T extends FairItem<T>> {
  readonly name: string;
  readonly waiting: Readonly<Record<WorkPriority, Fifo<T>>>;
  /** The item that started first is the first. */
  readonly inFlight: Fifo<T>;
  /** Its place among the groups that take turns. */
  readonly seats: Record<WorkPriority, Seat<T>>;
  isSlow: boolean;
  /** When one of its items was last found to be slow. */
  slowAtMs: number;
  /** How many of its items may be in flight while it is fast. */
  limit: number;
}

// A slow group also has items that end at once, because there is nothing to do. They prove nothing.
const slowForMs = 30_000;

const slowNewsMs = 60_000;

// Slow groups are remembered while they have no items. More than a cluster has slow namespaces at a time.
const groupsMax = 1_000;

export class FairShare<T extends FairItem<T>> {
  private readonly options: FairShareOptions;
  private readonly groups = new Map<string, Group<T>>();
  private readonly rings = createRings<T>();
  private readonly sizes = { fresh: 0, resync: 0 };
  private workers = 1;
  private inFlight = 0;
  private slowInFlight = 0;
  private freshInARow = 0;
  private slowNewsAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: FairShareOptions) {
    this.options = options;
  }

  /** The number of waiting items of a priority. */
  size(priority: WorkPriority): number {
    return this.sizes[priority];
  }

  /** When the item that has waited longest began to wait; undefined if none waits. */
  get oldestMs(): number | undefined {
    let oldestMs: number | undefined;
    for (const { waiting } of this.groups.values())
      for (const priority of priorities) {
        const sinceMs = waiting[priority].first?.waitingSinceMs;
        if (sinceMs !== undefined) oldestMs = Math.min(sinceMs, oldestMs ?? sinceMs);
      }
    return oldestMs;
  }

  setWorkers(workers: number): void {
    this.workers = workers;
    for (const group of this.groups.values()) {
      group.limit = this.share;
      this.seat(group);
    }
  }

  push(item: T): void {
    const group = this.groupOf(item);
    group.waiting[item.priority].push(item);
    this.sizes[item.priority] += 1;
    this.seat(group);
  }

  /** Takes a waiting item out without starting it. */
  remove(item: T): void {
    const group = this.groupOf(item);
    group.waiting[item.priority].remove(item);
    this.sizes[item.priority] -= 1;
    this.seat(group);
    this.forget(group);
  }

  /** Starts the next item; undefined if none may start. */
  start(): T | undefined {
    if (this.inFlight >= this.workers) return undefined;
    for (;;) {
      const fresh = this.next("fresh");
      const resync = this.next("resync");
      const priority = resync && (!fresh || this.freshInARow >= this.options.freshBurst) ? "resync" : "fresh";
      const group = priority === "resync" ? resync : fresh;
      const item = group?.waiting[priority].first;
      if (group === undefined || item === undefined) return undefined;
      // Time has passed since the group was seated.
      if (this.noteAge(group)) continue;
      // Counted only while a resync item waits: earlier fresh items did not delay it.
      this.freshInARow = resync !== undefined && priority === "fresh" ? this.freshInARow + 1 : 0;
      this.take(group, item);
      return item;
    }
  }

  /** `isGood`: its work was completed. */
  ended(item: T, isGood: boolean): void {
    const group = this.groupOf(item);
    const tookMs = this.options.nowMs() - item.startedMs;
    group.inFlight.remove(item);
    this.inFlight -= 1;
    if (group.isSlow) this.slowInFlight -= 1;
    if (tookMs >= this.options.slowMs) this.setSlow(group, true);
    else if (isGood && !this.hasOld(group) && !this.wasSlow(group)) {
      this.setSlow(group, false);
      group.limit = Math.min(this.workers, group.limit + 1);
    }
    this.seat(group);
    this.forget(group);
  }

  private get share(): number {
    return this.options.isGrouped ? Math.max(1, Math.floor(this.workers / 4)) : this.workers;
  }

  /** The group that is next; undefined if none with such an item may start one. */
  private next(priority: WorkPriority): Group<T> | undefined {
    const { idle, narrow, slow, wide } = this.rings[priority];
    // An eighth of the workers.
    const isReserved = this.workers - this.inFlight <= Math.floor(this.workers / 8);
    const slowMax = Math.max(1, Math.floor(this.workers / 2));
    const seat =
      // First, or other groups could keep the slow ones waiting for ever.
      (this.slowInFlight < this.share ? slow.first : undefined) ??
      idle.first ??
      (isReserved ? undefined : narrow.first) ??
      (this.slowInFlight < slowMax ? slow.first : undefined) ??
      (isReserved ? undefined : wide.first);
    return seat?.group;
  }

  private take(group: Group<T>, item: T): void {
    group.waiting[item.priority].remove(item);
    this.sizes[item.priority] -= 1;
    item.startedMs = this.options.nowMs();
    group.inFlight.push(item);
    this.inFlight += 1;
    if (group.isSlow) this.slowInFlight += 1;
    // To the end of its ring: the other groups are next.
    for (const priority of priorities) leave(group.seats[priority]);
    this.seat(group);
  }

  private standing(group: Group<T>): Standing {
    const count = group.inFlight.size;
    if (!this.options.isGrouped) return "idle";
    if (count < this.share) return group.isSlow ? "slow" : count === 0 ? "idle" : "narrow";
    return !group.isSlow && count < group.limit ? "wide" : "full";
  }

  private seat(group: Group<T>): void {
    const standing = this.standing(group);
    for (const priority of priorities) {
      const seat = group.seats[priority];
      const isReady = standing !== "full" && group.waiting[priority].size > 0;
      const ring = isReady ? this.rings[priority][standing] : undefined;
      if (seat.ring === ring) continue;
      leave(seat);
      seat.ring = ring;
      ring?.push(seat);
    }
  }

  /** Returns true if the group has become slow only because time has passed. */
  private noteAge(group: Group<T>): boolean {
    if (group.isSlow || !this.options.isGrouped || !this.hasOld(group)) return false;
    this.setSlow(group, true);
    this.seat(group);
    return true;
  }

  private hasOld(group: Group<T>): boolean {
    const oldest = group.inFlight.first;
    return oldest !== undefined && this.options.nowMs() - oldest.startedMs >= this.options.slowMs;
  }

  private wasSlow({ isSlow, slowAtMs }: Group<T>): boolean {
    return isSlow && this.options.nowMs() - slowAtMs < slowForMs;
  }

  private setSlow(group: Group<T>, isSlow: boolean): void {
    if (isSlow) {
      group.limit = this.share;
      group.slowAtMs = this.options.nowMs();
    }
    if (group.isSlow === isSlow || !this.options.isGrouped) return;
    group.isSlow = isSlow;
    this.slowInFlight += isSlow ? group.inFlight.size : -group.inFlight.size;
    if (!isSlow || this.options.nowMs() - this.slowNewsAtMs < slowNewsMs) return;
    this.slowNewsAtMs = this.options.nowMs();
    this.options.onSlow(group.name);
  }

  private groupOf({ group: name }: T): Group<T> {
    const known = this.groups.get(name);
    if (known !== undefined) return known;
    const group = createGroup<T>(name, this.share);
    this.groups.set(name, group);
    return group;
  }

  private forget(group: Group<T>): void {
    const { waiting, inFlight, isSlow, name } = group;
    if (inFlight.size + waiting.fresh.size + waiting.resync.size > 0) return;
    if (!isSlow || this.groups.size > groupsMax) this.groups.delete(name);
  }
}

function leave<T extends FairItem<T>>(seat: Seat<T>): void {
  seat.ring?.remove(seat);
  seat.ring = undefined;
}

function createGroup<T extends FairItem<T>>(name: string, limit: number): Group<T> {
  const seats = {} as Record<WorkPriority, Seat<T>>;
  const waiting = { fresh: new Fifo<T>(), resync: new Fifo<T>() };
  const group = { name, waiting, inFlight: new Fifo<T>(), seats, isSlow: false, slowAtMs: 0, limit };
  for (const priority of priorities)
    seats[priority] = { group, ring: undefined, before: undefined, after: undefined };
  return group;
}

function createRings<T extends FairItem<T>>(): Readonly<
  Record<WorkPriority, Readonly<Record<Ready, Fifo<Seat<T>>>>>
> {
  const rings = () => ({
    idle: new Fifo<Seat<T>>(),
    narrow: new Fifo<Seat<T>>(),
    slow: new Fifo<Seat<T>>(),
    wide: new Fifo<Seat<T>>(),
  });
  return { fresh: rings(), resync: rings() };
}
