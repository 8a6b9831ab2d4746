// One object that can never be right must cost the others nothing (K2, design of the queue).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;

const web = { namespace: "acme", name: "web-1" };

function edit(world: SimulatedRegion) {
  const edited = { metadata: web, spec: { replicas: 7 } } as never;
  return world.api.apply(replicaSets, edited, { fieldManager: "kubectl", force: true }, never);
}

/** No version of the deployment is applied any more, not even a previous one: an edit of its ReplicaSet stays. */
async function assertNothingInForce(world: SimulatedRegion): Promise<void> {
  await edit(world);
  await world.clock.advance(60_000);
  assert.equal((await world.api.get(replicaSets, web, {}, never))?.spec?.replicas, 7);
}

test("one poison message among a thousand healthy ones is parked, and the thousand are applied", async () => {
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= 500; index++) await world.setDeployment(index, { replicas: 0 });
  await world.setDeployment(0, { port: 70_000, replicas: 0 });
  for (let index = 501; index <= 1000; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("the cursor is behind all", () => agent.controller.status().stream?.cursor === 1001n);
  assert.equal((await world.replicaSets()).length, 1000);
  const troubled = agent.controller.objects({ onlyTroubled: true });
  assert.deepEqual(
    troubled.map(({ key, outcome, fieldPath }) => ({ key, outcome, fieldPath })),
    [{ key: "acme/web-0", outcome: ObjectStatus_Outcome.PARKED, fieldPath: "port" }],
  );
  assert.match(troubled[0]?.reason ?? "", /^port must be from 1 to 65535, but is 70000$/);
  await world.stop();
});

test("a poison that is put right is applied at once", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { port: 70_000 });
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("it is parked", () => agent.controller.status().parked === 1);
  await world.setDeployment(1, { port: 9090 });
  await world.until("it is there", async () => (await world.replicaSets()).length === 1, 1_000);
  assert.equal(agent.controller.status().parked, 0);
  await world.stop();
});

test("an object that the API server refuses is parked, and holds up neither the cursor nor its neighbours", async () => {
  const world = await SimulatedRegion.create();
  world.server.faults.intercept(({ method, path }) =>
    method === "PATCH" && path.endsWith("/replicasets/web-1")
      ? { kind: "whole", status: 422, body: { kind: "Status", code: 422, reason: "Invalid", message: "no" } }
      : undefined,
  );
  await world.setDeployment(1);
  await world.setDeployment(2);
  const agent = await world.startAgent();
  await world.until("the neighbour is there", async () => (await world.replicaSets()).length === 1);
  await world.until("the cursor passes", () => agent.controller.status().stream?.cursor === 2n);
  assert.equal(agent.controller.status().parked, 1);
  const tried = agent.writes.filter(({ key }) => key === "acme/web-1").length;
  await world.clock.advance(30_000);
  assert.equal(agent.writes.filter(({ key }) => key === "acme/web-1").length, tried);
  await world.stop();
});

for (const { by, change, isRefused } of [
  { by: "krane", change: { port: 70_000 }, isRefused: false },
  { by: "the API server", change: { image: "registry.example/refused:1" }, isRefused: true },
])
  test(`a version that ${by} rejects leaves the previous one in force: its drift is repaired`, async () => {
    const world = await SimulatedRegion.create();
    const invalid = { kind: "Status", code: 422, reason: "Invalid", message: "no" };
    if (isRefused)
      world.server.faults.intercept(({ method, body }) =>
        method === "PATCH" && JSON.stringify(body).includes("refused:1")
          ? { kind: "whole", status: 422, body: invalid }
          : undefined,
      );
    await world.setDeployment(1, { replicas: 2 });
    const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
    await world.until("it is applied", async () => (await world.replicaSets()).length === 1);
    await world.setDeployment(1, { replicas: 3, ...change });
    await world.until("the new version is rejected", () => agent.controller.status().parked === 1);
    const replicas = async () => (await world.api.get(replicaSets, web, {}, never))?.spec?.replicas;
    assert.equal(await replicas(), 2);
    await edit(world);
    await world.until("the edit is repaired", async () => (await replicas()) === 2);
    const [status] = agent.controller.objects({ onlyTroubled: true });
    assert.deepEqual(
      [status?.outcome, status?.desiredVersion, status?.appliedVersion],
      [ObjectStatus_Outcome.PARKED, 2n, 1n],
    );
    const written = agent.writes.length;
    await world.clock.advance(600_000);
    assert.ok(agent.writes.length - written <= 10, "a rejected version is retried with back-off only");
    await world.setDeployment(1, { replicas: 4 });
    await world.until("a good version replaces both", async () => (await replicas()) === 4);
    assert.equal(agent.controller.status().parked, 0);
    await world.stop();
  });

test("a spec that is too large for the agent is rejected with its size; the previous one stays, and nothing waits", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { replicas: 2 });
  const agent = await world.startAgent();
  await world.until("it is applied", async () => (await world.replicaSets()).length === 1);
  const encryptedEnvironmentVariables = new Uint8Array(9 * 1024 * 1024);
  await world.setDeployment(1, { replicas: 3, encryptedEnvironmentVariables });
  await world.setDeployment(2);
  await world.until("the cursor passes", () => agent.controller.status().stream?.cursor === 3n);
  await world.until("the one behind it is applied", async () => (await world.replicaSets()).length === 2);
  const replicas = async () => (await world.api.get(replicaSets, web, {}, never))?.spec?.replicas;
  const check = async () => {
    const troubled = agent.controller.objects({ onlyTroubled: true });
    assert.deepEqual(
      troubled.map(({ key, id, outcome, desiredVersion, appliedVersion }) => {
        return { key, id, outcome, desiredVersion, appliedVersion };
      }),
      [
        {
          key: "acme/web-1",
          id: "d_1",
          outcome: ObjectStatus_Outcome.PARKED,
          desiredVersion: 2n,
          appliedVersion: 1n,
        },
      ],
    );
    assert.match(troubled[0]?.reason ?? "", /^too large: 9437\d{3} bytes, limit 8388608$/);
    assert.equal(await replicas(), 2);
  };
  await check();
  await edit(world);
  await world.until("the edit is repaired", async () => (await replicas()) === 2);
  // Resyncs and replays bring the same.
  await world.clock.advance(1_200_000);
  await check();
  await world.setDeployment(1, { replicas: 4 });
  await world.until("a smaller spec replaces it", async () => (await replicas()) === 4);
  assert.equal(agent.controller.status().parked, 0);
  await world.stop();
});

test("a deletion that the API server rejects does not bring the object back into force", async () => {
  const world = await SimulatedRegion.create();
  const invalid = { kind: "Status", code: 422, reason: "Invalid", message: "no" };
  world.server.faults.intercept(({ method }) =>
    method === "DELETE" ? { kind: "whole", status: 422, body: invalid } : undefined,
  );
  await world.setDeployment(1, { replicas: 2 });
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("it is applied", async () => (await world.replicaSets()).length === 1);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.until("the deletion is rejected", () => agent.controller.status().parked === 1);
  await assertNothingInForce(world);
  await world.stop();
});

test("a rejected version of another id under the same name keeps nothing of the previous one in force", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { replicas: 2 });
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("it is applied", async () => (await world.replicaSets()).length === 1);
  await world.plane.admin.forgetDeployment(region, "d_1");
  await world.setDeployment(2, { k8sName: "web-1", port: 70_000 });
  await world.until("the new one is rejected", () => agent.controller.status().parked === 1);
  await assertNothingInForce(world);
  await world.stop();
});

test("a version that cannot be applied yet keeps the cursor below it", async () => {
  const world = await SimulatedRegion.create();
  const heal = world.server.faults.intercept(({ method, path }) =>
    method === "PATCH" && path.endsWith("/replicasets/web-1")
      ? { kind: "whole", status: 503, body: { kind: "Status", code: 503, message: "later" } }
      : undefined,
  );
  for (let index = 1; index <= 10; index++) await world.setDeployment(index);
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("the others are there", async () => (await world.replicaSets()).length === 9);
  await world.clock.advance(10_000);
  assert.equal(agent.controller.status().stream?.cursor, 0n);
  heal();
  await world.until("the last one is there", async () => (await world.replicaSets()).length === 10, 120_000);
  assert.equal(agent.controller.status().stream?.cursor, 10n);
  await world.stop();
});
