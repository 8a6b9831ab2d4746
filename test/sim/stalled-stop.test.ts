import assert from "node:assert/strict";
import { test } from "node:test";
import { loadKinds, ownNamespace } from "../../sim/sim-agent.ts";
import { leaseName } from "../../sim/sim-region.ts";
import { World } from "../../sim/world.ts";

function leaseHolder({ cluster }: World): string {
  const lease = cluster.get("leases", "coordination.k8s.io", ownNamespace, leaseName);
  return (lease?.["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity ?? "";
}

test("an agent that is stalled when it is told to stop does so when it runs again", async () => {
  const world = await World.create({ seed: 1, kinds: await loadKinds() });
  for (const agent of world.agents) agent.start();
  await world.runFor(30_000);
  // A leader first gives up its lease.
  const agent = world.agents.find(({ name }) => !leaseHolder(world).startsWith(`krane-${name}`));
  assert.ok(agent);
  const process = agent.process;
  process?.stall(20_000);
  await world.runFor(5_000);
  agent.stop();
  await world.runFor(10_000);
  assert.equal(process?.isAlive, true, "it does nothing while it is stalled");
  await world.runFor(15_000);
  assert.equal(process?.isAlive, false);
  assert.equal(world.violation, undefined);
  world.abandon();
});

test("an agent that is stalled for longer than its grace period is killed", async () => {
  const world = await World.create({ seed: 1, kinds: await loadKinds() });
  const [agent] = world.agents;
  assert.ok(agent);
  agent.start();
  await world.runFor(30_000);
  agent.process?.stall(600_000);
  agent.stop();
  await world.runFor(50_000);
  assert.equal(agent.process, undefined);
  assert.equal(world.violation, undefined);
  world.abandon();
});
