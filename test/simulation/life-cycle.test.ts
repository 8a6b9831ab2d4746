// How a controller starts, stops and takes orders.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { DeleteDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { deployment, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;

test("a controller that cannot watch does not start, and leaves nothing running", async () => {
  const world = await SimulatedRegion.create();
  world.server.faults.intercept(({ path }) =>
    path.includes("/pods")
      ? {
          kind: "whole",
          status: 403,
          body: { kind: "Status", code: 403, reason: "Forbidden", message: "no" },
        }
      : undefined,
  );
  const agent = world.createAgent();
  await assert.rejects(world.resolved(agent.controller.start()), /cannot watch Pod: .*403 Forbidden/);
  assert.equal(world.server.faults.openWatches, 0);
  assert.equal(world.clock.timerCount, 0);
  await agent.controller.stop();
  await world.stop();
});

test("a start that is given up ends at once", async () => {
  const world = await SimulatedRegion.create();
  world.server.faults.intercept(({ path }) => (path.includes("/pods") ? "hang" : undefined));
  const agent = world.createAgent();
  const giveUp = new AbortController();
  const started = agent.controller.start(giveUp.signal);
  giveUp.abort();
  await assert.rejects(world.resolved(started), /cannot watch .*Pod/);
  assert.equal(world.clock.timerCount, 0);
  await world.stop();
});

test("stop may be called repeatedly, also before and during the start", async () => {
  const world = await SimulatedRegion.create();
  const never1 = world.createAgent();
  await never1.controller.stop();
  const agent = world.createAgent();
  const started = agent.controller.start();
  const stops = [agent.controller.stop(), agent.controller.stop()];
  await assert.rejects(world.resolved(started));
  await world.resolved(Promise.all(stops));
  await agent.controller.stop();
  assert.equal(world.clock.timerCount, 0);
  assert.equal(world.server.faults.openWatches, 0);
  await world.stop();
});

test("after a stop in the middle of everything nothing runs", async () => {
  const world = await SimulatedRegion.create({ withoutCilium: true });
  for (let index = 1; index <= 20; index++) await world.setDeployment(index);
  const agent = await world.startAgent();
  await world.clock.advance(3_000);
  await agent.stop();
  assert.equal(world.clock.timerCount, 0);
  assert.equal(world.plane.faults.openStreams, 0);
  const writes = agent.writes.length;
  await world.clock.advance(600_000);
  assert.equal(agent.writes.length, writes);
  await world.stop();
});

test("an order is applied like a message of the stream, and returns its outcome", async () => {
  const world = await SimulatedRegion.create();
  const agent = await world.startAgent();
  const { controller } = agent;
  const applied = await world.resolved(controller.apply(deployment(1), never));
  assert.equal(applied.outcome, "applied");
  assert.deepEqual(await world.replicaSetNames(), ["web-1"]);
  const again = await world.resolved(controller.apply(deployment(1), never));
  assert.equal(again.outcome, "unchanged");
  const wrong = await world.resolved(controller.apply(deployment(2, { image: "" }), never));
  assert.equal(wrong.outcome, "parked");
  assert.equal(wrong.fieldPath, "image");
  const order = create(DeleteDeploymentSchema, { k8sNamespace: "acme", k8sName: "web-1" });
  const deleted = await world.resolved(controller.delete(order, never));
  assert.equal(deleted.outcome, "deleted");
  assert.deepEqual(await world.replicaSetNames(), []);
  await world.stop();
});

test("an order ends with the controller", async () => {
  const world = await SimulatedRegion.create({ withoutCilium: true });
  const agent = await world.startAgent();
  world.server.faults.intercept(({ method }) => (method === "POST" ? "hang" : undefined));
  const refused = assert.rejects(agent.controller.apply(deployment(1), never));
  await world.clock.advance(1_000);
  await agent.stop();
  await refused;
  assert.equal(world.clock.timerCount, 0);
  await world.stop();
});

test("what was ordered is not suspected because the control plane does not know it", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(2);
  const agent = await world.startAgent();
  await world.resolved(agent.controller.apply(deployment(1), never));
  await world.clock.advance(3_600_000);
  assert.deepEqual(await world.replicaSetNames(), ["web-1", "web-2"]);
  assert.deepEqual(agent.controller.blockedDeletions(), []);
  await world.stop();
});
