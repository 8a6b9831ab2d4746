import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { createQuietLog } from "../../../test/support/quiet-log.ts";
import { createSeededRandom } from "../../concurrency/random.ts";
import { ChangeFeed, type ChangeFeedDeps } from "./change-feed.ts";

const region = "local.dev";

/** A connection whose answers to the question for counters are written down here. */
class ScriptedConnection extends EventEmitter {
  counter = 79n;
  /** What is announced while an answer is on its way, as the database may do. */
  announcedMeanwhile: bigint | undefined;

  async query(sql: string) {
    if (!sql.startsWith("SELECT")) return { rows: [] };
    const rows = [{ name: region, counter: `${this.counter}` }];
    if (this.announcedMeanwhile !== undefined)
      this.emit("notification", { payload: `${this.announcedMeanwhile} ${region}` });
    return { rows };
  }

  end(): Promise<void> {
    return Promise.resolve();
  }
}

async function startFeed(t: { after(stop: () => Promise<void>): void }) {
  const clock = new FakeClock();
  const connection = new ScriptedConnection();
  const feed = new ChangeFeed({
    clock,
    random: createSeededRandom(1),
    log: createQuietLog(),
    connect: async () => connection as unknown as Awaited<ReturnType<ChangeFeedDeps["connect"]>>,
  });
  const stopped = new AbortController();
  const running = feed.run(stopped.signal);
  t.after(async () => {
    stopped.abort();
    await running;
  });
  await clock.settle();
  const isKnown = async (counterSeen: bigint) => {
    const waiting = new AbortController();
    let woken = false;
    const wait = feed.wait(region, counterSeen, waiting.signal).then(
      () => {
        woken = true;
      },
      () => undefined,
    );
    await clock.settle();
    waiting.abort();
    await wait;
    return woken;
  };
  return { clock, connection, isKnown };
}

test("a change that is announced while the counters are read is not forgotten over the older answer", async (t) => {
  const { clock, connection, isKnown } = await startFeed(t);
  assert.equal(await isKnown(79n), false);
  connection.announcedMeanwhile = 80n;
  await clock.advance(2_000);
  assert.equal(await isKnown(79n), true);
});

test("a counter that went back with its database is followed", async (t) => {
  const { clock, connection, isKnown } = await startFeed(t);
  connection.counter = 5n;
  await clock.advance(2_000);
  assert.equal(await isKnown(5n), false);
  assert.equal(await isKnown(4n), true);
});
