// The agent process without what every process needs: with no file descriptor left its calls fail and are retried, and
// without heap it ends, and the next process brings the cluster to the same state.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { replicaSets } from "../../../src/kube/resources.ts";
import { startAgentProcess } from "../../support/agent-process.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { openHttp2, requestHttp2 } from "../../support/http-clients.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { kubeconfigFor, serveCluster } from "../../support/served-cluster.ts";
import { serveControlPlane, token } from "../server/served-control-plane.ts";
import { agentToken, region } from "./agent-world.ts";

const never = new AbortController().signal;
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

/** A region whose agent is a process, with its connections through proxies. */
async function createRegion(t: TestContext) {
  const { program, remove } = await buildKrane();
  t.after(remove);
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const { admin, running } = await serveControlPlane(t, "h2c");
  const toCluster = await startFaultProxy(t, Number(new URL(cluster.url).port));
  const toPlane = await startFaultProxy(t, running?.port ?? assert.fail("it is not served"));
  const folder = await mkdtemp(join(tmpdir(), "krane-starved-"));
  t.after(() => rm(folder, { recursive: true }));
  const kubeconfigPath = join(folder, "kubeconfig");
  await writeFile(kubeconfigPath, kubeconfigFor(toCluster.url));
  const place = { program, region, controlPlane: { url: toPlane.url, token }, kubeconfigPath, agentToken };
  const replicasInCluster = async () =>
    (await cluster.api.list(replicaSets, {}, never)).items.map(({ spec }) => spec?.replicas);
  return { admin, cluster, toCluster, toPlane, place, replicasInCluster };
}

function limitDescriptors(pid: number, soft: string): void {
  const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), `--nofile=${soft}:`]);
  assert.equal(status, 0, String(stderr));
}

test("an agent without a file descriptor left retries, and recovers without a restart once it has some", {
  skip: hasPrlimit ? false : "prlimit is missing (Debian's package util-linux)",
}, async (t) => {
  const { admin, toCluster, toPlane, place, replicasInCluster } = await createRegion(t);
  const agent = await startAgentProcess(t, place);
  await admin.setDeployment(region, applyDeployment({ replicas: 1 }));
  await eventually("it is applied", async () => assert.deepEqual(await replicasInCluster(), [1]));
  // An open connection needs no other descriptor. A new one would keep Node busy, which cannot accept it.
  const session = await openHttp2(agent.url);
  t.after(() => session.destroy());
  const checks = async () => JSON.parse((await requestHttp2(session, "/health/ready")).body).checks;
  limitDescriptors(agent.pid, "3");
  for (const proxy of [toCluster, toPlane]) proxy.cut();
  await admin.setDeployment(region, applyDeployment({ replicas: 2 }));
  await eventually("it reaches neither of its peers", async () => {
    const { kubernetes, "control plane": plane } = await checks();
    assert.notEqual(kubernetes, "ok");
    assert.notEqual(plane, "ok");
  });
  assert.deepEqual(await replicasInCluster(), [1]);
  limitDescriptors(agent.pid, "1024");
  await eventually("the change is applied", async () => assert.deepEqual(await replicasInCluster(), [2]));
  await eventually("all is well again", async () =>
    assert.deepEqual(await checks(), { "control plane": "ok", kubernetes: "ok" }),
  );
  session.destroy();
  await agent.stop();
});

test("an agent whose heap a flood of states fills ends, and the next one applies them all", async (t) => {
  const { admin, cluster, place } = await createRegion(t);
  // The next agent would wait until the lease of this one expires.
  const env = { UNKEY_LEASE: "off" };
  const small = await startAgentProcess(t, place, { ...env, NODE_OPTIONS: "--max-old-space-size=64" });
  const names = Array.from({ length: 600 }, (_, index) => `web-${index}`);
  const command = ["true", "x".repeat(100_000)];
  for (const k8sName of names)
    await admin.setDeployment(
      region,
      applyDeployment({ deploymentId: `d_${k8sName}`, k8sName, command, replicas: 0 }),
    );
  assert.match((await small.gone).stderr, /heap out of memory/);
  const next = await startAgentProcess(t, place, env);
  await eventually("everything is applied", async () => {
    const live = (await cluster.api.list(replicaSets, {}, never)).items;
    assert.equal(live.length, names.length);
  });
  await next.stop();
});
