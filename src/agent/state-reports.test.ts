import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { ReportAgentStateResponseSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import {
  BlockedDeletionSchema,
  ControllerStatusSchema,
  ObjectStatusSchema,
  StrangerSchema,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import { AgentView } from "./agent-view.ts";
import { type AgentStateReport, runStateReports } from "./state-reports.ts";

interface World {
  parked: number;
  /** Why pods cannot run, by key. */
  failing: ReadonlyMap<string, string>;
  /** The keys of the deletions that are held back. */
  blocked: readonly string[];
  stream: StreamStatus_State;
  cursor: bigint;
  /** The deletions allowed at the control plane, and what the agent then did. */
  released: readonly string[];
  releases: string[];
  /** The names of the strangers; those that begin with "x" cannot be adopted. */
  strangers: readonly string[];
  adoptions: readonly string[];
  adopted: string[];
}

/** An agent with one controller whose status the test controls, and the reports that it has sent. */
function createAgent(send: (world: World) => Promise<void> = async () => undefined) {
  const clock = new FakeClock();
  const world: World = {
    parked: 0,
    failing: new Map(),
    blocked: [],
    stream: StreamStatus_State.OPEN,
    cursor: 0n,
    released: [],
    releases: [],
    strangers: [],
    adoptions: [],
    adopted: [],
  };
  const view = new AgentView(
    { instanceId: "ins_1", region: "local", version: "0", startedAtMs: 1, clusterId: () => "cluster-1" },
    { networkPolicy: "required", runtimeClass: "gvisor" },
  );
  view.add("deployments", {
    status: () =>
      create(ControllerStatusSchema, {
        name: "deployments",
        parked: world.parked,
        failing: world.failing.size,
        blockedDeletions: world.blocked.length,
        stream: { state: world.stream, cursor: world.cursor },
        seals: [{ kind: "apps/ReplicaSet", unknownKey: world.strangers.length }],
      }),
    failures: () => world.failing,
    objects: () => Array.from({ length: world.parked }, () => create(ObjectStatusSchema)),
    blockedDeletions: () => world.blocked.map((key) => create(BlockedDeletionSchema, { key })),
    releaseDeletion(key) {
      world.releases.push(key);
      return true;
    },
    seals: {
      strangers: () =>
        world.strangers.map((name) =>
          create(StrangerSchema, { controller: "deployments", name, adoptable: !name.startsWith("x") }),
        ),
      adopt(objects) {
        world.adopted.push(...objects.map(({ name }) => name));
        return objects.map(() => ({ kind: "allowed" }));
      },
    },
  });
  const sent: AgentStateReport[] = [];
  const stopping = new AbortController();
  const deps = {
    clock,
    log: createQuietLog(),
    view,
    send: async (report: AgentStateReport) => {
      sent.push(report);
      await send(world);
      const releasedDeletions = world.released.map((key) => ({ controller: "deployments", key }));
      const adoptions = world.adoptions.map((name) => ({ controller: "deployments", name }));
      return create(ReportAgentStateResponseSchema, { releasedDeletions, adoptions });
    },
  };
  const ended = runStateReports(deps, stopping.signal);
  const stop = async () => {
    stopping.abort();
    await ended;
    assert.equal(clock.timerCount, 0);
  };
  return { clock, world, view, sent, stop };
}

describe("the agent's state", () => {
  test("is reported immediately and then every 30 s, even when nothing changes", async () => {
    const { clock, sent, stop } = createAgent();
    await clock.settle();
    assert.equal(sent.length, 1);
    assert.equal(sent[0]?.state?.instanceId, "ins_1");
    await clock.advance(90_000);
    assert.equal(sent.length, 4);
    await stop();
  });

  test("is reported soon after objects got into trouble, in one report", async () => {
    const { clock, world, sent, stop } = createAgent();
    await clock.advance(3_000);
    world.parked = 7;
    world.blocked = ["a/b", "a/c"];
    await clock.advance(2_000);
    assert.equal(sent.length, 2);
    assert.deepEqual([sent[1]?.troubledObjects?.length, sent[1]?.blockedDeletions?.length], [7, 2]);
    await stop();
  });

  test("is reported a little later after a recovery, but not while objects flap", async () => {
    const { clock, world, sent, stop } = createAgent();
    world.failing = new Map([["a/b", "1 of 1 pod: ErrImagePull"]]);
    await clock.advance(2_000);
    assert.equal(sent.length, 2);
    world.failing = new Map();
    await clock.advance(6_000);
    assert.equal(sent.length, 2);
    await clock.advance(6_000);
    assert.equal(sent.length, 3);
    await stop();
  });

  test("is reported soon after a stream connected or disconnected", async () => {
    const { clock, world, sent, stop } = createAgent();
    await clock.advance(1_000);
    world.stream = StreamStatus_State.BACKING_OFF;
    await clock.advance(2_000);
    assert.equal(sent[1]?.state?.controllers?.[0]?.stream?.state, StreamStatus_State.BACKING_OFF);
    await stop();
  });

  test("is reported soon after pods began to fail", async () => {
    const { clock, world, sent, stop } = createAgent();
    await clock.advance(1_000);
    world.failing = new Map([["a/b", "1 of 1 pod: ErrImagePull"]]);
    await clock.advance(2_000);
    assert.equal(sent.length, 2);
    await stop();
  });

  test("is reported soon after pods failed for another reason, within a second", async () => {
    const { clock, world, sent, stop } = createAgent();
    world.failing = new Map([["a/b", "1 of 1 pod: Unschedulable"]]);
    await clock.advance(20_000);
    const before = sent.length;
    world.failing = new Map([["a/b", "1 of 1 pod: ErrImagePull"]]);
    await clock.advance(900);
    assert.equal(sent.length, before + 1);
    await stop();
  });

  test("is reported at most every other second while there is news all the time", async () => {
    const { clock, world, sent, stop } = createAgent();
    for (let second = 0; second < 60; second += 1) {
      world.cursor += 1n;
      await clock.advance(1_000);
    }
    assert.ok(sent.length >= 25 && sent.length <= 34, `${sent.length} reports`);
    await stop();
  });

  test("is reported soon after a version was settled, and not again for the same one", async () => {
    const { clock, world, sent, stop } = createAgent();
    await clock.advance(1_000);
    world.cursor = 7n;
    await clock.advance(2_000);
    assert.equal(sent[1]?.state?.controllers?.[0]?.stream?.cursor, 7n);
    await clock.advance(20_000);
    assert.equal(sent.length, 2);
    await stop();
  });

  test("report responses carry releases, and each is applied once even if repeated", async () => {
    const { clock, world, stop } = createAgent();
    world.blocked = ["a/b", "a/c"];
    await clock.settle();
    assert.deepEqual(world.releases, []);
    world.released = ["a/b", "a/unheard"];
    await clock.advance(30_000);
    assert.deepEqual(world.releases, ["a/b"]);
    world.blocked = ["a/c"];
    await clock.advance(60_000);
    assert.deepEqual(world.releases, ["a/b"]);
    await stop();
  });

  test("lists strangers, the adoptable ones first, and has those adopted that the response names", async () => {
    const { clock, world, sent, stop } = createAgent();
    world.strangers = ["x-other", ...Array.from({ length: 1_500 }, (_, index) => `web-${index}`)];
    world.adoptions = ["web-1", "web-2"];
    await clock.advance(30_000);
    assert.equal(sent[1]?.strangers?.length, 1_001);
    assert.deepEqual([sent[1]?.strangers?.[0]?.name, sent[1]?.strangers?.at(-1)?.name], ["web-0", "x-other"]);
    assert.deepEqual([...new Set(world.adopted)], ["web-1", "web-2"]);
    world.strangers = [];
    const before = sent.length;
    await clock.advance(14_000);
    assert.equal(sent.length, before + 1, "reported before the next regular report");
    await stop();
  });

  test("counts objects that got into trouble while a report was being sent", async () => {
    const { clock, sent, stop } = createAgent(async (during) => {
      during.parked = 1;
    });
    await clock.advance(2_000);
    assert.equal(sent.length, 2);
    await stop();
  });

  test("lists at most a hundred objects and deletions", async () => {
    const { clock, world, sent, stop } = createAgent();
    world.parked = 1_000;
    world.blocked = Array.from({ length: 1_000 }, (_, index) => `a/b${index}`);
    await clock.advance(2_000);
    assert.deepEqual([sent[1]?.troubledObjects?.length, sent[1]?.blockedDeletions?.length], [100, 100]);
    assert.equal(sent[1]?.state?.controllers?.[0]?.parked, 1_000);
    await stop();
  });

  test("lists objects of every controller, even if one has too many in trouble", async () => {
    const { clock, world, view, sent, stop } = createAgent();
    world.parked = 1_000;
    const other = create(ObjectStatusSchema, { controller: "sentinels" });
    view.add("sentinels", {
      status: () => create(ControllerStatusSchema, { name: "sentinels", parked: 1 }),
      failures: () => new Map(),
      objects: () => [other],
      blockedDeletions: () => [],
      releaseDeletion: () => false,
      seals: { strangers: () => [], adopt: () => [] },
    });
    await clock.advance(2_000);
    const listed = sent.at(-1)?.troubledObjects ?? [];
    assert.deepEqual([listed.length, listed.includes(other)], [100, true]);
    await stop();
  });

  test("is retried with back-off when a report with news failed", async () => {
    let isAway = true;
    const { clock, world, sent, stop } = createAgent(async () => {
      if (isAway) throw new Error("unavailable");
    });
    await clock.advance(60_000);
    assert.equal(sent.length, 5, "after 4, 12, 28 and 58 s");
    isAway = false;
    await clock.advance(30_000);
    const delivered = sent.length;
    isAway = true;
    world.cursor = 7n;
    await clock.advance(2_000);
    assert.equal(sent.length, delivered + 1);
    isAway = false;
    await clock.advance(4_000);
    assert.equal(sent.length, delivered + 2, "what is not delivered is still news");
    await clock.advance(20_000);
    assert.equal(sent.length, delivered + 2);
    await stop();
  });

  test("is not retried early when a report without news failed", async () => {
    let isAway = false;
    const { clock, sent, stop } = createAgent(async () => {
      if (isAway) throw new Error("unavailable");
    });
    await clock.settle();
    isAway = true;
    await clock.advance(60_000);
    assert.equal(sent.length, 3);
    await stop();
  });
});
