// Reports that never arrive: desired state is applied and settled nevertheless, and what there is to report in the end
// is said once (K9).
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const keys = 20;

for (const code of [Code.Unavailable, Code.Internal, Code.PermissionDenied, Code.ResourceExhausted]) {
  test(`reports that are answered ${Code[code]} fail no apply and no delete`, async () => {
    const world = await SimulatedRegion.create({ withPods: true });
    for (const rpc of ["reportDeploymentStatus", "reportDeploymentStatuses"] as const)
      world.plane.faults.failNext(rpc, code, Number.POSITIVE_INFINITY);
    for (let index = 1; index <= keys; index++) await world.setDeployment(index);
    const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
    const cursorIs = (version: number) => () => agent.controller.status().stream?.cursor === BigInt(version);
    await world.until("all are settled", cursorIs(keys));
    for (let index = 1; index < keys; index++) await world.plane.admin.scale(region, `d_${index}`, 2);
    await world.plane.admin.deleteDeployment(region, `d_${keys}`);
    await world.until("the changes are settled", cursorIs(2 * keys));
    await world.clock.advance(60_000);

    const sets = await world.replicaSets();
    assert.deepEqual(
      sets.map(({ spec, status }) => [spec?.replicas, status?.readyReplicas]),
      Array(keys - 1).fill([2, 2]),
    );
    const done = [ObjectStatus_Outcome.APPLIED, ObjectStatus_Outcome.UNCHANGED, ObjectStatus_Outcome.DELETED];
    for (const { key, outcome } of agent.controller.objects())
      assert.ok(
        done.some((one) => one === outcome),
        key,
      );
    assert.equal((await world.plane.admin.deploymentReport(region, "d_1"))?.exists ?? false, false);

    const before = world.reported.length;
    world.plane.faults.heal();
    await world.until(
      "every key is reported",
      async () => {
        for (let index = 1; index < keys; index++)
          if ((await world.plane.admin.instances(region, `d_${index}`)).length !== 2) return false;
        return true;
      },
      600_000,
    );
    await world.clock.advance(60_000);
    assert.ok(world.reported.length - before <= keys, `${world.reported.length - before} reports`);
    await world.stop();
  });
}
