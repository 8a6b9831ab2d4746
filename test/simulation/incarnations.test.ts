// A control plane that names its incarnation. As long as it is the same one, lower versions mean that it lags, and
// nothing goes back. In a newer one, everything is compared within one resync pass. Neither deletes anything wrongly.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createQuietLog } from "../support/quiet-log.ts";
import { createTestPlane, type TestPlane } from "../support/store-admin.ts";
import { deployment, region, SimulatedRegion, token } from "./simulated-region.ts";

const passMs = 60_000;

/** Objects 1 to `count`; then the first is changed, the second deleted if there is one, and one more is added. */
async function afterChanges(count: number) {
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= count; index++) await world.setDeployment(index, { replicas: 1 });
  const agent = await world.startAgent();
  const isApplied = async (wanted: number) => (await world.replicaSetNames()).length === wanted;
  await world.until("all are applied", () => isApplied(count), 300_000);
  await world.plane.admin.scale(region, "d_1", 2);
  if (count > 1) await world.plane.admin.deleteDeployment(region, "d_2");
  await world.setDeployment(count + 1, { replicas: 1 });
  const wanted = count > 1 ? count : count + 1;
  await world.until(
    "the changes are applied",
    async () => (await isApplied(wanted)) && (await isScaled(world, 2)),
  );
  return { world, agent };
}

async function isScaled(world: SimulatedRegion, replicas: number): Promise<boolean> {
  const first = (await world.replicaSets()).find(({ metadata }) => metadata?.name === "web-1");
  return first?.spec?.replicas === replicas;
}

/** Puts the objects as they were before the changes into a control plane. */
function restore(plane: TestPlane, count: number): void {
  for (let index = 1; index <= count; index++)
    plane.faults.insertBehind(region, "deployment", deployment(index, { replicas: 1 }), BigInt(index));
  plane.faults.setCounter(region, BigInt(count));
}

async function createPlane(
  world: SimulatedRegion,
  count: number,
  change: { readonly ordinal?: bigint; readonly id?: string; readonly isReplica?: boolean },
): Promise<TestPlane> {
  const primary = await world.plane.store.incarnation();
  assert.ok(primary);
  const parent = change.id === undefined ? primary.parent : primary.id;
  const incarnation = { ...primary, ...change, parent };
  const plane = createTestPlane(
    { tokens: [token], incarnation },
    { clock: world.clock, log: createQuietLog() },
  );
  await plane.admin.registerRegion(region);
  restore(plane, count);
  return plane;
}

for (const lagMs of [240_000, 3_600_000]) {
  test(`a replica that lags by ${lagMs / 60_000} minutes brings nothing back and deletes nothing`, async () => {
    const { world, agent } = await afterChanges(10);
    const replica = await createPlane(world, 10, { isReplica: true });
    const names = await world.replicaSetNames();
    const writes = agent.writes.length;
    world.answering = replica;
    world.plane.faults.cutStreams();
    await world.clock.advance(lagMs);
    assert.deepEqual(await world.replicaSetNames(), names);
    assert.ok(await isScaled(world, 2));
    assert.equal(agent.writes.length, writes);
    assert.deepEqual(agent.controller.blockedDeletions(), []);

    world.answering = world.plane;
    await world.plane.admin.scale(region, "d_1", 3);
    await world.until("the primary is followed again", () => isScaled(world, 3), 2 * passMs);
    await world.stop();
  });
}

test("an agent that is restarted while only a lagging replica answers changes nothing", async () => {
  const { world, agent } = await afterChanges(10);
  const names = await world.replicaSetNames();
  await agent.stop();
  world.answering = await createPlane(world, 10, { isReplica: true });
  const restarted = await world.startAgent();
  await world.clock.advance(600_000);
  assert.deepEqual(await world.replicaSetNames(), names);
  assert.ok(await isScaled(world, 2));
  assert.deepEqual(restarted.writes, []);
  world.answering = world.plane;
  await world.plane.admin.scale(region, "d_1", 3);
  await world.until("the primary is followed", () => isScaled(world, 3), 2 * passMs);
  await world.stop();
});

for (const count of [1, 10, 2_000]) {
  test(`a restored control plane with ${count} objects is followed within one pass, without deleting`, async () => {
    const { world, agent } = await afterChanges(count);
    await world.clock.advance(600_000);
    const writes = agent.writes.length;
    world.plane.faults.restoreFromEmpty(region);
    restore(world.plane, count);
    const restored = Array.from({ length: count }, (_, index) => `web-${index + 1}`);
    await world.until(
      "the restored state is applied and reported",
      async () => {
        const names = new Set(await world.replicaSetNames());
        if (!restored.every((name) => names.has(name)) || !(await isScaled(world, 1))) return false;
        const reports = restored.map((_, index) =>
          world.plane.admin.deploymentReport(region, `d_${index + 1}`),
        );
        return (await Promise.all(reports)).every((report) => report?.exists === true);
      },
      passMs + 15_000,
    );
    const since = agent.writes.slice(writes);
    assert.deepEqual(
      since.filter(({ verb }) => verb === "delete"),
      [],
    );
    assert.ok(
      (await world.replicaSetNames()).includes(`web-${count + 1}`),
      "the object that was lost keeps running",
    );
    assert.match(
      await world.metrics.render(),
      /controlplane_incarnations_total{controller="deployments"} 1\n/,
    );
    await world.stop();
  });
}

/** Ten objects, of which the control plane has forgotten the first, and how long ago; and version 11. */
async function afterForgetting() {
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= 10; index++) await world.setDeployment(index, { replicas: 1 });
  await world.startAgent();
  await world.until("all are applied", async () => (await world.replicaSets()).length === 10);
  await world.clock.advance(600_000);
  await world.plane.admin.scale(region, "d_2", 2);
  await world.plane.admin.forgetDeployment(region, "d_1");
  const forgottenMs = world.clock.nowMs();
  const isGone = async () => (await world.replicaSets()).length === 9;
  return { world, isGone, sinceMs: () => world.clock.nowMs() - forgottenMs };
}

test("absences of an older incarnation do not count in a newer one (K5)", async () => {
  const first = await afterForgetting();
  await first.world.until("its absence is confirmed", first.isGone, 10 * passMs);
  const confirmedMs = first.sinceMs();
  await first.world.stop();

  const { world, isGone, sinceMs } = await afterForgetting();
  // Before the last pass that it takes.
  await world.clock.advance(confirmedMs - passMs / 2);
  world.plane.faults.restoreFromEmpty(region);
  for (let index = 2; index <= 10; index++)
    world.plane.faults.insertBehind(region, "deployment", deployment(index, { replicas: 1 }), BigInt(index));
  world.plane.faults.setCounter(region, 10n);
  await world.clock.advance(passMs);
  assert.ok(sinceMs() > confirmedMs);
  assert.equal(await isGone(), false);
  await world.until("its absence is confirmed", isGone, 10 * passMs);
  await world.stop();
});

test("two servers around a failover cannot make the agent swing", async () => {
  const { world, agent } = await afterChanges(10);
  const old = world.plane;
  const primary = await old.store.incarnation();
  assert.ok(primary);
  // The replica was promoted before it had received the changes; the old primary still answers, and is still changed.
  const promoted = await createPlane(world, 10, { ordinal: primary.ordinal + 5n, id: "promoted-1" });
  await promoted.admin.scale(region, "d_1", 4);
  world.answering = promoted;
  old.faults.cutStreams();
  await world.until("the promoted one is followed", () => isScaled(world, 4), passMs);
  await old.admin.scale(region, "d_1", 9);
  await old.admin.deleteDeployment(region, "d_3");
  const writes = agent.writes.length;
  for (let turn = 0; turn < 30; turn++) {
    const [next, last] = turn % 2 === 0 ? [old, promoted] : [promoted, old];
    world.answering = next;
    last.faults.cutStreams();
    await world.clock.advance(20_000);
    assert.ok(await isScaled(world, 4), `turn ${turn}`);
  }
  assert.ok((await world.replicaSetNames()).includes("web-3"));
  assert.deepEqual(agent.writes.slice(writes), []);
  assert.match(
    await world.metrics.render(),
    /controlplane_ignored_responses_total{controller="deployments"} [1-9]/,
  );
  await world.stop();
});

test("an older control plane that is upgraded, and names its incarnation for the first time, is compared once", async () => {
  const world = await SimulatedRegion.create({ namesIncarnation: false });
  for (const index of [1, 2, 3]) await world.setDeployment(index, { replicas: 1 });
  const agent = await world.startAgent();
  await world.until("all are applied", async () => (await world.replicaSetNames()).length === 3);
  await world.clock.advance(passMs);
  const writes = agent.writes.length;
  const plane = createTestPlane({ tokens: [token] }, { clock: world.clock, log: createQuietLog() });
  await plane.admin.registerRegion(region);
  restore(plane, 3);
  world.answering = plane;
  world.plane.faults.cutStreams();
  await world.clock.advance(2 * passMs);
  assert.deepEqual(agent.writes.slice(writes), [], "everything is the same");
  await plane.admin.scale(region, "d_1", 2);
  await world.until("it is followed", () => isScaled(world, 2), passMs);
  await world.stop();
});
