// What the control plane shows of objects while their agent restarts: what is true of
// them, which the agent itself does not know yet.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  GetObjectRequestSchema,
  ObjectKind,
  ObjectView_Phase as Phase,
} from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { kindNames } from "../../../src/kinds/kinds.ts";
import { getObject } from "../../../src/server/admin-service/object-reads.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
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
  await eventually("both orders are applied", async () => assert.deepEqual(await phases(), expected));
  await agent.stop();
  // It can report, and has nothing to report of.
  faults.pauseStreams();
  await startAgent();
  await eventually("the new one has reported", async () => {
    const [record] = await store.agents(region);
    const cursors = record?.state?.report.state?.controllers.map(({ stream }) => stream?.cursor);
    assert.deepEqual(cursors, [0n, 0n, 0n, 0n]);
  });
  assert.deepEqual(await phases(), expected);
  const scaled = await admin.scale(region, "d_up", 2);
  assert.deepEqual(await phases(), [Phase.WAITING, Phase.DELETED], `version ${scaled} is for the new one`);
  faults.heal();
  await eventually("the new one has caught up", async () => assert.deepEqual(await phases(), expected));
});

test("what was deleted under an earlier agent is forgotten once the new one has looked for it", async (t) => {
  const { store, admin, faults, startAgent } = await createAgentWorld(t);
  const agent = await startAgent();
  const [deployment, sentinel, policy] = [applyDeployment(), applySentinel(), applyPolicy()];
  await admin.setDeployment(region, deployment);
  await admin.setSentinel(region, sentinel);
  await admin.setPolicy(region, policy, deployment.deploymentId);
  await admin.deleteDeployment(region, deployment.deploymentId);
  await admin.deleteSentinel(region, sentinel.sentinelId);
  const left = async () => {
    // Gone is gone long enough.
    await store.trimHistory({ ageMaxMs: 0, entriesMax: 1_000 }, Date.now());
    const rows = await Promise.all(kindNames.map((kind) => store.rows(region, kind)));
    return rows.flat().map(({ id }) => id);
  };
  const settledBy = async (whose: "state" | "known") => {
    const [record] = await store.agents(region);
    const streams = record?.[whose]?.report.state?.controllers.map(({ stream }) => stream);
    return streams?.map((stream) => Number(stream?.settledUpTo)).sort();
  };
  // Nothing was ordered of the fourth kind.
  const all = [0, 4, 5, 6];
  await eventually("the orders are applied", async () => assert.deepEqual(await settledBy("known"), all));
  await agent.stop();
  faults.pauseStreams();
  await startAgent();
  await eventually("the new one has reported", async () =>
    assert.deepEqual(await settledBy("state"), [0, 0, 0, 0]),
  );
  for (let looks = 0; looks < 3; looks++) assert.equal((await left()).length, 3, "nobody has looked");
  faults.heal();
  await eventually("it has looked", async () => assert.deepEqual(await settledBy("state"), all));
  assert.equal((await left()).length, 3, "not for long");
  // It calls again because it has something to report.
  await admin.setPolicy(region, applyPolicy({ ciliumNetworkPolicyId: "cnp_new", k8sName: "new" }));
  await eventually("nothing is left of them", async () => assert.deepEqual(await left(), ["cnp_new"]));
});
