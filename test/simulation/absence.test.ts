// Absence is not an order (K5): what happens to running objects when the control plane does not know them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { events, namespaces, replicaSets } from "../../src/kube/resources.ts";
import { deletionLimits } from "../support/deletion-limits.ts";
import { region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const isLong = process.env["KRANE_TEST_LONG"] === "1";
const never = new AbortController().signal;
const hourMs = 3_600_000;

async function populated(
  count: number,
  hasDigests = true,
): Promise<{ world: SimulatedRegion; agent: SimulatedAgent }> {
  const world = await SimulatedRegion.create({ hasDigests });
  for (let index = 1; index <= count; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await world.startAgent();
  await world.until("all are there", () => agent.controller.status().stream?.cursor === BigInt(count));
  assert.equal((await world.replicaSets()).length, count);
  await world.clock.advance(301_000);
  return { world, agent };
}

function deletes(agent: SimulatedAgent): number {
  return agent.writes.filter(({ verb }) => verb === "delete").length;
}

for (const { count, hasDigests } of [1, 3, 10, 200].flatMap((count) => [
  { count, hasDigests: true },
  { count, hasDigests: false },
])) {
  // Long enough for every confirmation, every age and a whole window of the budget.
  const longMs = count > 10 ? 720_000 : hourMs;
  const how = hasDigests ? "compared by digest" : "each asked for";
  // Those of loud-absence.test.ts have 200 with digests.
  const skip = count > 10 && hasDigests && !isLong;
  describe(`with ${count} objects, ${how}`, { skip }, () => {
    test("a control plane that was restored empty leads to no delete, and says so", async () => {
      const { world, agent } = await populated(count, hasDigests);
      world.plane.faults.restoreFromEmpty(region);
      await world.clock.advance(longMs);
      assert.equal(deletes(agent), 0);
      assert.equal((await world.replicaSets()).length, count);
      const blocked = agent.controller.blockedDeletions();
      assert.equal(blocked.length, count);
      assert.match(blocked[0]?.reason ?? "", /known to the control plane/);
      assert.equal(agent.controller.status().blockedDeletions, count);
      const said = (await world.list(events)).filter(({ reason }) => reason === "DeletionBlocked");
      assert.equal(said.length, count);
      await world.stop();
    });

    test("a restarted agent that finds an empty control plane deletes nothing either", async () => {
      const { world, agent } = await populated(count, hasDigests);
      await agent.stop();
      world.plane.faults.restoreFromEmpty(region);
      const second = await world.startAgent();
      await world.clock.advance(longMs);
      assert.equal(deletes(second), 0);
      assert.equal((await world.replicaSets()).length, count);
      await world.stop();
    });

    test("not_found for every question leads to no delete", async () => {
      const { world, agent } = await populated(count, hasDigests);
      world.plane.faults.failNext("getDesiredDeploymentState", Code.NotFound, Number.POSITIVE_INFINITY);
      await world.clock.advance(longMs);
      assert.equal(deletes(agent), 0);
      await world.stop();
    });

    test("an unknown region leads to no delete", async () => {
      const { world, agent } = await populated(count, hasDigests);
      const code = Code.FailedPrecondition;
      world.plane.faults.failNext("getDesiredDeploymentState", code, Number.POSITIVE_INFINITY);
      world.plane.faults.failNext("watchDeployments", code, Number.POSITIVE_INFINITY);
      world.plane.faults.cutStreams();
      await world.clock.advance(longMs);
      assert.equal(deletes(agent), 0);
      await world.stop();
    });
  });
}

test("a row that really vanished is deleted after its confirmations, and not before", async () => {
  const { world, agent } = await populated(10);
  await world.plane.admin.forgetDeployment(region, "d_4");
  await world.clock.advance(110_000);
  assert.equal(deletes(agent), 0);
  await world.until("it is gone", async () => (await world.replicaSets()).length === 9, 200_000);
  assert.ok(!(await world.replicaSetNames()).includes("web-4"));
  await world.clock.advance(hourMs);
  assert.equal(deletes(agent), 1);
  assert.equal((await world.replicaSets()).length, 9);
  await world.stop();
});

test("an object that is too young is not deleted for its absence", async () => {
  const { world, agent } = await populated(10);
  await world.setDeployment(11);
  await world.until("it is there", async () => (await world.replicaSets()).length === 11);
  await world.plane.admin.forgetDeployment(region, "d_11");
  await world.clock.advance(230_000);
  assert.equal(deletes(agent), 0);
  assert.match(agent.controller.blockedDeletions()[0]?.reason ?? "", /too young/);
  await world.until("it is gone", async () => (await world.replicaSets()).length === 10, 200_000);
  await world.stop();
});

test("more vanished rows than the budget allows are deleted in portions", async () => {
  const { world, agent } = await populated(10);
  for (const index of [1, 2, 3, 4, 5]) await world.plane.admin.forgetDeployment(region, `d_${index}`);
  await world.clock.advance(300_000);
  assert.equal(deletes(agent), 3);
  assert.match(agent.controller.blockedDeletions()[0]?.reason ?? "", /budget/);
  await world.until("the rest goes later", async () => (await world.replicaSets()).length === 5, 1_200_000);
  await world.stop();
});

test("with explicit deletion nothing goes for its absence, until a person releases it", async () => {
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= 4; index++) await world.setDeployment(index);
  const agent = await world.startAgent({ deletion: { ...deletionLimits, mode: "explicit" } });
  await world.until("all are there", async () => (await world.replicaSets()).length === 4);
  await world.plane.admin.forgetDeployment(region, "d_1");
  await world.clock.advance(hourMs);
  assert.equal(deletes(agent), 0);
  assert.equal(agent.controller.releaseDeletion("acme/web-2"), false);
  assert.equal(agent.controller.releaseDeletion("acme/web-1"), true);
  await world.until("the released one is gone", async () => (await world.replicaSets()).length === 3);
  assert.deepEqual(await world.replicaSetNames(), ["web-2", "web-3", "web-4"]);
  await world.stop();
});

test("desired state that returns takes the suspicion away", async () => {
  const { world, agent } = await populated(3);
  world.plane.faults.restoreFromEmpty(region);
  await world.clock.advance(600_000);
  assert.equal(agent.controller.blockedDeletions().length, 3);
  for (let index = 1; index <= 3; index++) await world.setDeployment(index, { replicas: 0 });
  await world.until("nothing is blocked", () => agent.controller.blockedDeletions().length === 0, 200_000);
  await world.clock.advance(hourMs);
  assert.equal(deletes(agent), 0);
  await world.stop();
});

test("an explicit delete is applied at once", async () => {
  const { world, agent } = await populated(1);
  await world.plane.admin.deleteDeployment(region, "d_1");
  // The ReplicaSet, and the policy that nothing needs any more.
  await world.until("both are gone", async () => deletes(agent) === 2, 1_000);
  assert.deepEqual(await world.replicaSets(), []);
  await world.stop();
});

test("an object of the same name that is not krane's is never touched", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  const foreign = {
    metadata: { name: "web-1", namespace: "acme", labels: { app: "theirs" } },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: "theirs" } },
      template: {
        metadata: { labels: { app: "theirs" } },
        spec: { containers: [{ name: "c", image: "registry.example/theirs:1" }] },
      },
    },
  };
  await world.api.create(replicaSets, foreign, {}, never);
  const [before] = await world.replicaSets();
  await world.setDeployment(1);
  await world.setDeployment(2);
  const agent = await world.startAgent();
  await world.until("the other one is there", async () => (await world.replicaSets()).length === 2);
  await world.clock.advance(600_000);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.clock.advance(600_000);
  const after = (await world.replicaSets()).find(({ metadata }) => metadata?.name === "web-1");
  assert.deepEqual(after, before);
  assert.deepEqual(
    agent.writes.filter(({ key }) => key === "acme/web-1"),
    [],
  );
  await world.stop();
});
