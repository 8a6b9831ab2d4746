// A control plane that is gone, comes back, or comes back as another one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import {
  BreakerStatus_State as Breaker,
  StreamStatus_State as Stream,
} from "../../src/gen/krane/v1/agent_pb.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { deployment, region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;

function deletes(agent: SimulatedAgent): number {
  return agent.writes.filter(({ verb }) => verb === "delete").length;
}

/** The agent reports several deployments in one call, and one by itself. */
const reportRpcs = ["reportDeploymentStatus", "reportDeploymentStatuses"] as const;

test("two hours without a control plane and ten thousand status changes cost one report per key", async () => {
  const keys = 20;
  const rounds = 10_000 / keys / 2;
  const twoHoursMs = 7_200_000;
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= keys; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await world.startAgent();
  await world.until("all are settled", () => agent.controller.status().stream?.cursor === BigInt(keys));
  await world.clock.advance(10_000);
  for (const rpc of [...reportRpcs, "watchDeployments", "getDesiredDeploymentState"] as const)
    world.plane.faults.failNext(rpc, Code.Unavailable, Number.POSITIVE_INFINITY);
  world.plane.faults.cutStreams();
  const sets = await world.replicaSets();
  const podName = (name: string | undefined, round: number) =>
    round < 0 ? undefined : `${name}-pod-${round}`;
  for (let round = 0; round < rounds; round++) {
    for (const [index, set] of sets.entries()) {
      const { name } = set.metadata ?? {};
      await world.replacePod(set, podName(name, round - 1), podName(name, round) ?? "", `10.0.0.${index}`);
    }
    await world.clock.advance(twoHoursMs / rounds);
  }
  const before = world.reported.length;
  world.plane.faults.heal();
  await world.until(
    "the last status of every key is known",
    async () => {
      for (let index = 1; index <= keys; index++) {
        const instances = await world.plane.admin.instances(region, `d_${index}`);
        if (instances[0]?.k8sName !== `web-${index}-pod-${rounds - 1}`) return false;
      }
      return true;
    },
    600_000,
  );
  const sent = world.reported.slice(before);
  assert.equal(sent.length, keys, "one report per key");
  assert.equal(deletes(agent), 0);
  assert.ok(agent.writes.every(({ kind, verb }) => kind !== "ReplicaSet" || verb === "apply"));
  await world.stop();
});

test("what an absent control plane missed is told when its stream is back, not when a breaker's minute is over", async () => {
  const keys = 20;
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= keys; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("all are settled", () => agent.controller.status().stream?.cursor === BigInt(keys));
  await world.clock.advance(10_000);
  for (const rpc of [...reportRpcs, "watchDeployments"] as const)
    world.plane.faults.failNext(rpc, Code.Unavailable, Number.POSITIVE_INFINITY);
  world.plane.faults.cutStreams();
  for (const [index, set] of (await world.replicaSets()).entries())
    await world.replacePod(set, undefined, `${set.metadata?.name}-pod`, `10.0.0.${index}`);
  await world.until("the breaker is open", () => agent.controller.status().breaker?.state === Breaker.OPEN);
  world.plane.faults.heal();
  await world.until(
    "the stream is tried",
    () => agent.controller.status().stream?.state === Stream.CONNECTING,
    10_000,
  );
  await world.clock.advance(4_000);
  for (let index = 1; index <= keys; index++) {
    const instances = await world.plane.admin.instances(region, `d_${index}`);
    assert.deepEqual(
      instances.map(({ k8sName }) => k8sName),
      [`web-${index}-pod`],
    );
  }
  assert.equal(agent.controller.status().breaker?.state, Breaker.CLOSED);
  await world.stop();
});

test("changes of desired state wait for the control plane, and nothing else does", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  world.plane.faults.failNext("watchDeployments", Code.Unavailable, Number.POSITIVE_INFINITY);
  world.plane.faults.failNext("reportDeploymentStatus", Code.Unavailable, Number.POSITIVE_INFINITY);
  world.plane.faults.cutStreams();
  await world.clock.advance(60_000);
  await world.api.delete(replicaSets, { namespace: "acme", name: "web-1" }, {}, never);
  await world.until("drift is still repaired", async () => (await world.replicaSets()).length === 1, 5_000);
  await world.setDeployment(2);
  world.plane.faults.heal();
  await world.until("the change comes", async () => (await world.replicaSets()).length === 2, 120_000);
  assert.equal(agent.controller.status().parked, 0);
  await world.stop();
});

test("a control plane that counts again from 0 is followed, and nothing is deleted", async () => {
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= 10; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await world.startAgent();
  await world.until("all are settled", () => agent.controller.status().stream?.cursor === 10n);
  world.plane.faults.restoreFromEmpty(region);
  for (let index = 1; index <= 3; index++) await world.setDeployment(index, { replicas: 0 });
  await world.setDeployment(2, { replicas: 0, port: 9999 });
  await world.setDeployment(11, { replicas: 0 });
  await world.until("the new one is there", async () => (await world.replicaSets()).length === 11, 660_000);
  await world.until("the changed one is changed", async () => {
    const changed = (await world.replicaSets()).find(({ metadata }) => metadata?.name === "web-2");
    return changed?.spec?.template?.spec?.containers[0]?.ports?.[0]?.containerPort === 9999;
  });
  await world.clock.advance(1_800_000);
  assert.equal(deletes(agent), 0);
  await world.stop();
});

test("rows that became visible behind the cursor, or with lower versions, arrive within one replay", async () => {
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= 5; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await world.startAgent();
  await world.until("all are settled", () => agent.controller.status().stream?.cursor === 5n);
  world.plane.faults.insertBehind(region, "deployment", deployment(6, { replicas: 0 }), 2n);
  await world.until("it is there", async () => (await world.replicaSets()).length === 6, 610_000);
  assert.equal(deletes(agent), 0);
  assert.equal(agent.controller.status().stream?.cursor, 5n);
  await world.stop();
});

test("a report that is refused does not count against the control plane, and is not repeated", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  world.plane.faults.failNext("reportDeploymentStatus", Code.InvalidArgument, Number.POSITIVE_INFINITY);
  const agent = await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(200_000);
  assert.equal(world.reported.length, 1);
  assert.equal(agent.controller.status().breaker?.state, 1);
  await world.stop();
});

test("one report that hangs does not stop the others", async () => {
  const world = await SimulatedRegion.create();
  for (const rpc of reportRpcs) world.plane.faults.hangNext(rpc, 1);
  for (let index = 1; index <= 5; index++) await world.setDeployment(index);
  await world.startAgent();
  await world.until(
    "the others are reported",
    async () => {
      const reports = await Promise.all(
        [1, 2, 3, 4, 5].map((n) => world.plane.admin.deploymentReport(region, `d_${n}`)),
      );
      return reports.filter((report) => report?.exists).length >= 4;
    },
    5_000,
  );
  await world.until("the one that hung is too", async () => {
    const reports = await Promise.all(
      [1, 2, 3, 4, 5].map((n) => world.plane.admin.deploymentReport(region, `d_${n}`)),
    );
    return reports.every((report) => report?.exists);
  });
  await world.stop();
});
