import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { WatchEventsRequestSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { MemoryStore } from "../memory-store.ts";
import type { HistoryQuery } from "../store.ts";
import { eventFeed } from "./events.ts";

const region = "local.dev";

/** A store in which something else happens before the newest entries are read. */
class BusyStore extends MemoryStore {
  beforeHistory: () => Promise<void> = async () => undefined;

  override async history(of: string, query: HistoryQuery) {
    await this.beforeHistory();
    return super.history(of, query);
  }
}

async function createWorld() {
  const store = new BusyStore();
  await store.registerRegion(region);
  let replicas = 0;
  const happen = async (times: number) => {
    for (let time = 0; time < times; time++) {
      replicas += 1;
      await store.put(region, "deployment", applyDeployment({ replicas }), { by: "ann", atMs: 0 });
    }
  };
  /** The first so many answers: the entry of the event, if there is one, and the position. */
  const watch = async (request: { backlog?: number; after?: bigint }, count: number) => {
    const left = new AbortController();
    const deps = { store, clock: new FakeClock() };
    const answers: string[] = [];
    const feed = eventFeed(deps, create(WatchEventsRequestSchema, { region, ...request }), left.signal);
    for await (const { event, position } of feed) {
      answers.push(`${event?.entry ?? "start"} at ${position}`);
      if (answers.length === count) break;
    }
    left.abort();
    return answers;
  };
  return { store, happen, watch };
}

test("a watch first tells where it starts, so that it can be continued before any event", async () => {
  const { happen, watch } = await createWorld();
  assert.deepEqual(await watch({}, 1), ["start at 0"]);
  await happen(3);
  assert.deepEqual(await watch({}, 1), ["start at 3"]);
  assert.deepEqual(await watch({ after: 2n }, 2), ["start at 2", "3 at 3"]);
});

test("a watch that is lost before its backlog arrived gets it when continued", async () => {
  const { happen, watch } = await createWorld();
  await happen(3);
  assert.deepEqual(await watch({ backlog: 2 }, 3), ["start at 1", "2 at 2", "3 at 3"]);
  assert.deepEqual(await watch({ after: 1n }, 3), ["start at 1", "2 at 2", "3 at 3"]);
});

test("a watch delivers everything that happens while it starts, even more than its backlog", async () => {
  const { store, happen, watch } = await createWorld();
  await happen(3);
  store.beforeHistory = () => happen(4);
  assert.deepEqual(await watch({ backlog: 2 }, 5), ["start at 3", "4 at 4", "5 at 5", "6 at 6", "7 at 7"]);
  assert.deepEqual(
    await watch({ backlog: 6 }, 7),
    ["start at 5", "6 at 6", "7 at 7", "8 at 8", "9 at 9", "10 at 10", "11 at 11"],
    "what is left of the backlog comes before",
  );
});
