// A real agent on the embedded cluster whose control plane is killed under it, again and
// again: in the end the cluster is as was acknowledged, and the control plane knows it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { replicaSets } from "../../../src/kube/resources.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/krane-process.ts";
import { startServer } from "../../support/running-server.ts";
import { serveCluster } from "../../support/served-cluster.ts";
import { type Change, createDataDir, startServerProcess } from "../../support/server-process.ts";
import { runAgent } from "../agent/agent-world.ts";

const region = "local.dev";
const token = "token-of-the-test";
const deployments = 4;

test("an agent converges on what was acknowledged before its control plane was killed", async (t) => {
  const dataDir = await createDataDir(t);
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const port = await freePort();
  const flags = { "data-dir": dataDir, listen: `127.0.0.1:${port}`, "agent-tokens": `${region} ${token}` };
  await runAgent(t, cluster, { region, port, token });

  const newest = new Map<string, Change>();
  for (const name of ["first", "second"]) {
    const server = await startServerProcess(t, { flags, region, run: name, deployments, changes: 40 });
    await server.changed(name === "first" ? 30 : 10);
    await server.end("SIGKILL");
    for (const change of server.changes) newest.set(change.id, change);
  }
  const last = await startServer(flags);

  // An agent whose connections were refused tries again within a minute: see docs/running.md.
  const patience = { deadlineMs: 120_000 };
  const isAsAcknowledged = async () => {
    const rows = await last.admin.deployments(region);
    for (const { id, version, spec } of rows) {
      const told = newest.get(id);
      assert.ok(told !== undefined && version >= BigInt(told.version), "not yet");
      if (version === BigInt(told.version)) assert.equal(spec.image, told.image);
    }
    const sets = (await cluster.api.list(replicaSets, {}, new AbortController().signal)).items;
    assert.deepEqual(
      sets.map(({ metadata, spec }) => [metadata?.name, spec?.template?.spec?.containers[0]?.image]).sort(),
      rows.map(({ spec }) => [spec.k8sName, spec.image]).sort(),
    );
    assert.equal(rows.length, deployments);
    for (const { id } of rows) {
      const instances = await last.admin.instances(region, id);
      assert.deepEqual(
        instances.map(({ status }) => status),
        [Status.RUNNING],
      );
    }
    const [record] = await last.admin.agents();
    assert.ok(record?.state !== undefined, "not yet");
  };
  await eventually("the cluster is as was acknowledged, and reported so", isAsAcknowledged, patience);
  await last.stop();
});
