// Wakes waiting streams when a region's counter has moved. One connection per process
// listens for the notifications that every change sends with its commit, and reads all
// counters every few seconds and after each reconnect: a notification can be lost with a
// connection, a counter cannot. A new incarnation wakes every stream, so that it ends.
import type { ClientBase } from "pg";
import { linkSignals } from "../../concurrency/abort.ts";
import { createBackoff } from "../../concurrency/backoff.ts";
import { ChangeSignal } from "../../concurrency/change-signal.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import type { Random } from "../../concurrency/random.ts";
import type { Log } from "../../telemetry/log.ts";

export const changeChannel = "krane_changes";

const pollEveryMs = 2_000;
const reconnect = { initialMs: 200, maxMs: 5_000, minMs: 100, jitter: "full" } as const;

type Connection = ClientBase & { end(): Promise<void> };

export interface ChangeFeedDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  connect(): Promise<Connection>;
  /** Called before each poll. */
  beforePoll?(): Promise<void>;
  /** A counter is lower than before: the database was rolled back under this server. */
  onRolledBack?(region: string, counterBefore: bigint): Promise<void>;
}

interface RegionState {
  /** The highest counter seen. */
  counter: bigint;
  readonly changed: ChangeSignal;
}

export class ChangeFeed {
  private readonly deps: ChangeFeedDeps;
  private readonly regions = new Map<string, RegionState>();
  private incarnation: string | null | undefined;

  constructor(deps: ChangeFeedDeps) {
    this.deps = deps;
  }

  knows(region: string): boolean {
    return this.regions.has(region);
  }

  /** Takes a counter that the caller has just read. */
  learn(region: string, counter: bigint): void {
    const state = this.state(region);
    if (state.counter < counter) this.move(state, counter);
  }

  /** Resolves once the counter is above the one given. */
  async wait(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void> {
    const state = this.state(region);
    if (state.counter <= counterSeen) await state.changed.wait(signal);
  }

  waitingCount(region: string): number {
    return this.regions.get(region)?.changed.size ?? 0;
  }

  /** Listens until the signal aborts, over any number of connections. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.deps;
    const backoff = createBackoff(reconnect, random);
    let isDown = false;
    while (!signal.aborted) {
      try {
        await this.listen(signal, () => {
          if (isDown) log.info("listening for changes in the database again");
          isDown = false;
          backoff.reset();
        });
      } catch (error) {
        if (signal.aborted) return;
        if (!isDown)
          log.warn("lost the connection that listens for changes in the database; reconnecting", { error });
        isDown = true;
      }
      await sleep(clock, backoff.nextMs(), signal).catch(() => undefined);
    }
  }

  private async listen(signal: AbortSignal, onHealthy: () => void): Promise<void> {
    const client = await this.deps.connect();
    const linked = linkSignals(signal);
    client.on("error", (error) => linked.abort(error));
    client.on("end", () => linked.abort(new Error("the connection was closed")));
    client.on("notification", ({ payload = "" }) => this.onNotification(payload));
    try {
      await client.query(`LISTEN ${changeChannel}`);
      for (;;) {
        await this.deps.beforePoll?.();
        await this.poll(client);
        onHealthy();
        await sleep(this.deps.clock, pollEveryMs, linked.signal);
      }
    } finally {
      linked.release();
      await client.end().catch(() => undefined);
    }
  }

  private async poll(client: ClientBase): Promise<void> {
    const before = new Map([...this.regions].map(([name, { counter }]) => [name, counter]));
    const { rows } = await client.query<{ name: string; counter: string; incarnation: string | null }>(
      `SELECT name, counter,
         (SELECT id FROM krane.incarnations ORDER BY ordinal DESC LIMIT 1) AS incarnation
       FROM krane.regions`,
    );
    this.wakeAllInNew(rows[0]?.incarnation);
    for (const { name, counter } of rows) {
      const state = this.state(name);
      const read = BigInt(counter);
      // A lower counter counts too: the database was restored, and streams must notice. But it must not go below what
      // was announced while this read was in progress: a stream that used the older number would miss the change.
      const isNews = read > state.counter || state.counter === before.get(name);
      const isLower = isNews && read < state.counter;
      if (isLower) await this.deps.onRolledBack?.(name, state.counter);
      if (isNews && state.counter !== read) this.move(state, read);
    }
  }

  private wakeAllInNew(incarnation: string | null | undefined): void {
    const isNew = this.incarnation !== undefined && incarnation !== this.incarnation;
    this.incarnation = incarnation;
    if (isNew) for (const { changed } of this.regions.values()) changed.wakeAll();
  }

  private onNotification(payload: string): void {
    const [, counter, region] = /^(\d+) (.*)$/s.exec(payload) ?? [];
    if (counter !== undefined && region !== undefined) this.learn(region, BigInt(counter));
  }

  private move(state: RegionState, counter: bigint): void {
    state.counter = counter;
    state.changed.wakeAll();
  }

  private state(region: string): RegionState {
    const known = this.regions.get(region);
    if (known !== undefined) return known;
    const created = { counter: 0n, changed: new ChangeSignal() };
    this.regions.set(region, created);
    return created;
  }
}
