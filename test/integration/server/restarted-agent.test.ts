// What the control plane shows of objects while their agent starts anew: what is true of
// them, which the agent itself does not know yet.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  GetObjectRequestSchema,
  ObjectKind,
  ObjectView_Phase as Phase,
} from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { getObject } from "../../../src/server/admin-service/object-reads.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { createAgentWorld, region } from "../agent/agent-world.ts";

test("an agent that has just started makes nothing wait that it had done before", async (t) => {
  const { store, admin, faults, startAgent } = await createAgentWorld(t);
  const agent = await startAgent();
  await admin.setDeployment(region, applyDeployment({ deploymentId: "d_up", k8sName: "up", replicas: 1 }));
  await admin.setDeployment(region, applyDeployment({ deploymentId: "d_down", k8sName: "down" }));
  await admin.deleteDeployment(region, "d_down");
  const phases = async () => {
    const refs = ["d_up", "d_down"].map((id) => ({ region, kind: ObjectKind.DEPLOYMENT, id }));
    const answers = refs.map((ref) => getObject(store, create(GetObjectRequestSchema, { ref })));
    return (await Promise.all(answers)).map(({ object }) => object?.phase);
  };
  const expected = [Phase.READY, Phase.DELETED];
  await eventually("both orders are carried out", async () => assert.deepEqual(await phases(), expected));
  await agent.stop();
  // It can report, and has nothing to report of.
  faults.pauseStreams();
  await startAgent();
  await eventually("the new one has reported", async () => {
    const [record] = await store.agents(region);
    const cursors = record?.state?.report.state?.controllers.map(({ stream }) => stream?.cursor);
    assert.deepEqual(cursors, [0n, 0n, 0n]);
  });
  assert.deepEqual(await phases(), expected);
  const scaled = await admin.scale(region, "d_up", 2);
  assert.deepEqual(await phases(), [Phase.WAITING, Phase.DELETED], `version ${scaled} is for the new one`);
  faults.heal();
  await eventually("the new one has caught up", async () => assert.deepEqual(await phases(), expected));
});
