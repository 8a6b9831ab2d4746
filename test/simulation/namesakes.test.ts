// Reports name a deployment by its name alone, without a namespace. Of two ReplicaSets with the same name, only the one
// that desired state names is reported (K9).
import assert from "node:assert/strict";
import { test } from "node:test";
import { pods } from "../../src/kube/resources.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const wanted = { k8sName: "web-1", k8sNamespace: "beta", replicas: 1 };

/** acme/web-1 is left over from a deployment that the control plane has forgotten, and beta/web-1 is wanted. */
async function createWorld() {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 3 });
  const first = await world.startAgent();
  await world.until("it runs", async () => (await world.plane.admin.instances(region, "d_1")).length === 3);
  await first.stop();
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.plane.admin.forgetDeployment(region, "d_1");
  await world.setDeployment(2, wanted);
  return world;
}

async function instancesOf(world: SimulatedRegion): Promise<readonly string[]> {
  const instances = await world.plane.admin.instances(region, "d_2");
  return instances.map(({ address }) => address.split(".")[1] ?? "");
}

/** Makes krane look at the pods of acme/web-1 again. */
async function disturb(world: SimulatedRegion): Promise<void> {
  const { items } = await world.api.list(pods, { namespace: "acme" }, never);
  const { name = "", namespace } = items[0]?.metadata ?? {};
  await world.api.delete(pods, { name, ...(namespace && { namespace }) }, { gracePeriodSeconds: 0 }, never);
  await world.clock.advance(30_000);
}

test("pods of a leftover with the same name in another namespace are not reported", async () => {
  const world = await createWorld();
  await world.startAgent();
  await world.until("it is reported", async () => (await instancesOf(world)).includes("beta"));
  await disturb(world);
  assert.deepEqual(await instancesOf(world), ["beta"]);
  await world.stop();
});

test("whichever is seen first after a restart, also of the leftover's deletion", async () => {
  const world = await createWorld();
  const first = await world.startAgent();
  await world.until("it is reported", async () => (await instancesOf(world)).includes("beta"));
  await first.stop();
  for (let round = 0; round < 5; round++) {
    const agent = await world.startAgent();
    await world.clock.advance(30_000);
    assert.deepEqual(await instancesOf(world), ["beta"]);
    await disturb(world);
    assert.deepEqual(await instancesOf(world), ["beta"]);
    await agent.stop();
  }
  await world.startAgent();
  const isGone = async () => (await world.replicaSets()).length === 1;
  await world.until("its absence is confirmed", isGone, 1_800_000);
  await world.clock.advance(30_000);
  assert.equal((await world.plane.admin.deploymentReport(region, "d_2"))?.exists, true);
  assert.deepEqual(await instancesOf(world), ["beta"]);
  await world.stop();
});
