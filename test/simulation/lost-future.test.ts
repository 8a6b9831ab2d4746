// A control plane that was restored from a backup has lost its newest versions, and may have reused their numbers. What
// krane knows of that lost future yields to what the control plane says now; a replica that merely lags changes nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { deployment, region, SimulatedRegion } from "./simulated-region.ts";

const resyncMs = 60_000;

/** Three deployments; the first one was deleted, and krane knows. */
async function afterDeletion(
  namesIncarnation: boolean,
  interceptors: readonly Interceptor[] = [],
  hasDigests = true,
) {
  const world = await SimulatedRegion.create({ interceptors, namesIncarnation, hasDigests });
  for (const index of [1, 2]) await world.setDeployment(index, { replicas: 1 });
  const agent = await world.startAgent();
  await world.until("both are applied", async () => (await world.replicaSetNames()).length === 2);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.until("one is deleted", async () => (await world.replicaSetNames()).join() === "web-2");
  await world.until("it is settled", () => agent.controller.status().stream?.cursor === 3n);
  return { world, agent };
}

/** As it was before the deletion. */
function restore(world: SimulatedRegion): void {
  const { faults } = world.plane;
  faults.restoreFromEmpty(region);
  for (const index of [1, 2])
    faults.insertBehind(region, "deployment", deployment(index, { replicas: 1 }), BigInt(index));
  faults.setCounter(region, 2n);
}

for (const namesIncarnation of [false, true]) {
  const named = namesIncarnation ? "a control plane that names its incarnation" : "an older control plane";

  test(`${named}: a restored object comes back with the next resync, although krane knows its deletion`, async () => {
    const { world } = await afterDeletion(namesIncarnation);
    await world.clock.advance(600_000);
    restore(world);
    // The lost number is used again before krane reconnects, so the control plane does not see that its cursor is lost.
    for (const index of [3, 4]) await world.setDeployment(index, { replicas: 1 });
    await world.until(
      "the restored object is back",
      async () => (await world.replicaSetNames()).includes("web-1"),
      resyncMs + 15_000,
    );
    await world.until("all are there", async () => (await world.replicaSetNames()).length === 4, 700_000);
    await world.stop();
  });

  test(`${named}: a restored object comes back at once if it has not reached the lost number yet`, async () => {
    const { world } = await afterDeletion(namesIncarnation);
    restore(world);
    await world.until(
      "the restored object is back",
      async () => (await world.replicaSetNames()).includes("web-1"),
      resyncMs,
    );
    await world.stop();
  });

  test(`${named}: responses of a replica that lags do not bring back what was deleted, however long it lags`, async () => {
    let isLagging = false;
    let asked = 0;
    const lag: Interceptor = (next) => async (call) => {
      const isAboutIt =
        call.method.name === "GetDesiredDeploymentState" &&
        !call.stream &&
        Reflect.get(call.message, "deploymentId") === "d_1";
      if (!isLagging || !isAboutIt) return next(call);
      asked += 1;
      const message = { version: 1n, state: { case: "apply", value: deployment(1, { replicas: 1 }) } };
      const response = await next(call).catch((error: unknown) => {
        if (error instanceof ConnectError && error.code === Code.NotFound) return undefined;
        throw error;
      });
      if (response === undefined) throw new ConnectError("no response to change", Code.Internal);
      return { ...response, message: Object.assign(response.message, message) } as typeof response;
    };
    const { world } = await afterDeletion(namesIncarnation, [lag], false);
    isLagging = true;
    world.plane.faults.cutStreams();
    await world.clock.advance(1_800_000);
    assert.ok(asked > 0, "the lagging replica was asked");
    assert.deepEqual(await world.replicaSetNames(), ["web-2"]);
    await world.stop();
  });
}

test("an older control plane: an object that is ordered again long after the restore comes back, although its number is lower", async () => {
  const { world } = await afterDeletion(false);
  const { faults } = world.plane;
  faults.restoreFromEmpty(region);
  faults.insertBehind(region, "deployment", deployment(2, { replicas: 1 }), 2n);
  faults.setCounter(region, 3n);
  await world.clock.advance(3 * resyncMs);
  faults.insertBehind(region, "deployment", deployment(1, { replicas: 1 }), 1n);
  await world.until(
    "the object is back, after the stream was replayed and three resyncs agreed",
    async () => (await world.replicaSetNames()).includes("web-1"),
    900_000,
  );
  await world.stop();
});
