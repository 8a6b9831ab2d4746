// Messages between servers as notifications of their database, which keeps them only until every server has got them. They
// have a connection of their own, which is opened when the first is sent or listened for, so that nothing else waits for them.
import type { ClientBase } from "pg";
import { linkSignals } from "../../concurrency/abort.ts";
import { createBackoff } from "../../concurrency/backoff.ts";
import { ChangeSignal } from "../../concurrency/change-signal.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import type { Random } from "../../concurrency/random.ts";
import type { Log } from "../../telemetry/log.ts";
import type { ServerChannel } from "../logs/server-channel.ts";

const channel = "krane_servers";
const reconnect = { initialMs: 200, maxMs: 5_000, minMs: 100, jitter: "full" } as const;
const aliveEveryMs = 5_000;

type Connection = ClientBase & { end(): Promise<void> };

export interface NotifyChannelDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  connect(): Promise<Connection>;
}

export class NotifyChannel implements ServerChannel {
  private readonly deps: NotifyChannelDeps;
  private readonly closing = new AbortController();
  private readonly listeners = new Set<(message: string) => void>();
  private client: Connection | undefined;
  private running: Promise<void> | undefined;
  private readonly opened = new ChangeSignal();

  constructor(deps: NotifyChannelDeps) {
    this.deps = deps;
  }

  async listen(onMessage: (message: string) => void): Promise<void> {
    this.listeners.add(onMessage);
    this.running ??= this.run(this.closing.signal);
    while (this.client === undefined) await this.opened.wait(this.closing.signal);
  }

  async publish(messages: readonly string[]): Promise<void> {
    if (this.client === undefined) throw new Error("not connected to the database");
    const sql =
      "SELECT pg_notify($1, message) FROM unnest($2::text[]) WITH ORDINALITY AS m (message, n) ORDER BY n";
    await this.client.query(sql, [channel, [...messages]]);
  }

  async close(): Promise<void> {
    this.closing.abort(new Error("the channel was closed"));
    await this.running;
  }

  private async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.deps;
    const backoff = createBackoff(reconnect, random);
    while (!signal.aborted) {
      try {
        await this.hold(signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) return;
        log.warn("lost the connection for messages between servers; reconnecting", { error });
      }
      await sleep(clock, backoff.nextMs(), signal).catch(() => undefined);
    }
  }

  private async hold(signal: AbortSignal, onOpen: () => void): Promise<void> {
    const client = await this.deps.connect();
    const linked = linkSignals(signal);
    client.on("error", (error) => linked.abort(error));
    client.on("end", () => linked.abort(new Error("the connection was closed")));
    client.on("notification", ({ payload = "" }) => {
      for (const listener of this.listeners) listener(payload);
    });
    try {
      // A message is not worth waiting for a disk.
      await client.query("SET synchronous_commit TO off");
      await client.query(`LISTEN ${channel}`);
      this.client = client;
      onOpen();
      this.opened.wakeAll();
      for (;;) {
        await sleep(this.deps.clock, aliveEveryMs, linked.signal);
        await client.query("SELECT 1");
      }
    } finally {
      this.client = undefined;
      linked.release();
      await client.end().catch(() => undefined);
    }
  }
}
