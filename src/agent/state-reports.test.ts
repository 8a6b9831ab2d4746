import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import {
  BlockedDeletionSchema,
  ControllerStatusSchema,
  ObjectStatusSchema,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import { AgentView } from "./agent-view.ts";
import { type AgentStateReport, runStateReports } from "./state-reports.ts";

interface World {
  parked: number;
  blocked: number;
  stream: StreamStatus_State;
}

/** An agent with one controller whose trouble and stream a test decides, and what it has sent. */
function createAgent(send: (world: World) => Promise<void> = async () => undefined) {
  const clock = new FakeClock();
  const world: World = { parked: 0, blocked: 0, stream: StreamStatus_State.OPEN };
  const view = new AgentView({ instanceId: "ins_1", region: "local", version: "0", startedAtMs: 1 });
  view.add("deployments", {
    status: () =>
      create(ControllerStatusSchema, {
        name: "deployments",
        parked: world.parked,
        blockedDeletions: world.blocked,
        stream: { state: world.stream },
      }),
    objects: () => Array.from({ length: world.parked }, () => create(ObjectStatusSchema)),
    blockedDeletions: () => Array.from({ length: world.blocked }, () => create(BlockedDeletionSchema)),
    releaseDeletion: () => false,
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
    },
  };
  const ended = runStateReports(deps, stopping.signal);
  const stop = async () => {
    stopping.abort();
    await ended;
    assert.equal(clock.timerCount, 0);
  };
  return { clock, world, sent, stop };
}

describe("the state of the agent", () => {
  test("is reported at once and then every 30 s, also when nothing changes", async () => {
    const { clock, sent, stop } = createAgent();
    await clock.settle();
    assert.equal(sent.length, 1);
    assert.equal(sent[0]?.state?.instanceId, "ins_1");
    await clock.advance(90_000);
    assert.equal(sent.length, 4);
    await stop();
  });

  test("is reported soon after something got into trouble, once for all that came together", async () => {
    const { clock, world, sent, stop } = createAgent();
    await clock.advance(3_000);
    world.parked = 7;
    world.blocked = 2;
    await clock.advance(2_000);
    assert.equal(sent.length, 2);
    assert.deepEqual([sent[1]?.troubledObjects?.length, sent[1]?.blockedDeletions?.length], [7, 2]);
    world.parked = 3;
    await clock.advance(20_000);
    assert.equal(sent.length, 2);
    await stop();
  });

  test("is reported soon after a stream came or went", async () => {
    const { clock, world, sent, stop } = createAgent();
    await clock.advance(1_000);
    world.stream = StreamStatus_State.BACKING_OFF;
    await clock.advance(2_000);
    assert.equal(sent[1]?.state?.controllers?.[0]?.stream?.state, StreamStatus_State.BACKING_OFF);
    await stop();
  });

  test("counts trouble that came while a report was on its way", async () => {
    const { clock, sent, stop } = createAgent(async (during) => {
      during.parked = 1;
    });
    await clock.advance(2_000);
    assert.equal(sent.length, 2);
    await stop();
  });

  test("lists a hundred of each and no more", async () => {
    const { clock, world, sent, stop } = createAgent();
    world.parked = 1_000;
    world.blocked = 1_000;
    await clock.advance(2_000);
    assert.deepEqual([sent[1]?.troubledObjects?.length, sent[1]?.blockedDeletions?.length], [100, 100]);
    assert.equal(sent[1]?.state?.controllers?.[0]?.parked, 1_000);
    await stop();
  });

  test("goes on being reported after reports that failed", async () => {
    const { clock, sent, stop } = createAgent(() => Promise.reject(new Error("unavailable")));
    await clock.advance(60_000);
    assert.equal(sent.length, 3);
    await stop();
  });
});
