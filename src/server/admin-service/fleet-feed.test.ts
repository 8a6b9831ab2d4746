import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import type { WatchFleetResponse } from "../../gen/krane/admin/v1/admin_pb.ts";
import { createSpec } from "../kind-messages.ts";
import { MemoryStore } from "../memory-store.ts";
import { FleetFeed } from "./fleet-feed.ts";

const author = { by: "test", atMs: 1 };
const deployment = (id: string) =>
  createSpec("deployment", { deploymentId: id, k8sName: id, k8sNamespace: "acme" });

/** A store with two regions, whose reads are counted, and the feed over it. */
async function createFeed() {
  const store = new MemoryStore();
  for (const region of ["a", "b"]) await store.registerRegion(region);
  const reads = { marks: 0 };
  const counting = {
    marks: () => {
      reads.marks += 1;
      return store.marks();
    },
    historySince: store.historySince.bind(store),
  };
  const clock = new FakeClock();
  const feed = new FleetFeed({ store: counting, clock });
  const stopping = new AbortController();
  const watch = () => {
    const heard: WatchFleetResponse[] = [];
    const done = (async () => {
      for await (const message of feed.watch(stopping.signal)) heard.push(message);
    })();
    return { heard, done };
  };
  return { store, reads, clock, watch, stop: () => stopping.abort() };
}

const shown = ({ regions }: WatchFleetResponse) =>
  regions.map(({ region, changed }) => `${region} ${changed.map(({ id }) => id).join(",")}`.trim());

test("a stream begins with all regions, and then has what changed, each object once", async () => {
  const { store, clock, watch, stop } = await createFeed();
  const { heard, done } = watch();
  await clock.advance(0);
  await store.put("b", "deployment", deployment("x"), author);
  await store.put("b", "deployment", deployment("y"), author);
  await store.stop("b", "deployment", "x", author);
  await clock.advance(500);
  await store.reportHeartbeat("a", 7);
  await clock.advance(500);
  assert.deepEqual(heard.map(shown), [["a", "b"], ["b x,y"], ["a"]]);
  stop();
  await clock.advance(500);
  await done;
});

test("a quiet stream shows every five seconds that it is alive", async () => {
  const { clock, watch, stop } = await createFeed();
  const { heard } = watch();
  await clock.advance(10_400);
  assert.deepEqual(heard.map(shown), [["a", "b"], [], []]);
  stop();
  await clock.advance(500);
});

test("many streams cost as many reads as one", async () => {
  const { store, reads, clock, watch, stop } = await createFeed();
  const all = Array.from({ length: 200 }, () => watch());
  await clock.advance(0);
  await store.put("a", "deployment", deployment("x"), author);
  await clock.advance(500);
  for (const { heard } of all) assert.deepEqual(heard.map(shown), [["a", "b"], ["a x"]]);
  assert.equal(reads.marks, 2);
  stop();
  await clock.advance(500);
});

test("more changes than fit into a message are said to be incomplete", async () => {
  const { store, clock, watch, stop } = await createFeed();
  const { heard } = watch();
  await clock.advance(0);
  for (let count = 0; count < 201; count += 1)
    await store.put("a", "deployment", deployment(`d${count}`), author);
  await clock.advance(500);
  assert.deepEqual([heard[1]?.regions[0]?.changed.length, heard[1]?.regions[0]?.incomplete], [200, true]);
  stop();
  await clock.advance(500);
});
