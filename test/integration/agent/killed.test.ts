// The agent process ended by SIGKILL in the middle of its work, at a chosen one of the requests by which it
// changes the cluster: in the end the cluster and the control plane know the same as without (K2, K3).

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { ciliumNetworkPolicies, pods, replicaSets } from "../../../src/kube/resources.ts";
import { annotationKeys } from "../../../src/model/labels.ts";
import { type AgentProcess, startAgentProcess } from "../../support/agent-process.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { type ServedCluster, serveCluster } from "../../support/served-cluster.ts";
import type { StoreAdmin } from "../../support/store-admin.ts";
import { serveControlPlane, token } from "../server/served-control-plane.ts";
import { agentToken, region } from "./agent-world.ts";

const batches = 10;
const deployments = 10;
// Every change takes at least one request, so each of these points is reached.
const everyPoint = Array.from({ length: batches * deployments }, (_, index) => index + 1);
const points = process.env["KRANE_TEST_LONG"] === "1" ? everyPoint : [1, 2, 36, 50, 99];
const never = new AbortController().signal;

interface Region {
  readonly admin: StoreAdmin;
  readonly cluster: ServedCluster;
}

interface Ending {
  readonly cluster: readonly string[];
  readonly reports: readonly string[];
}

/** One change to each deployment, the same in every run; the tag of an image says which batch it comes from. */
async function changeAll(admin: StoreAdmin, batch: number): Promise<void> {
  const choices = createSeededRandom(batch + 1);
  const rows = await admin.deployments(region);
  for (let index = 0; index < deployments; index++) {
    const choice = choices.next();
    const deploymentId = `d_${index}`;
    const isThere = rows.some(({ id, desired }) => id === deploymentId && desired === "running");
    // The first two stay, one in each environment: a policy that nothing uses would go a minute later.
    if (isThere && index >= 2 && choice < 0.4) await admin.deleteDeployment(region, deploymentId);
    else
      await admin.setDeployment(
        region,
        applyDeployment({
          deploymentId,
          k8sName: `web-${index}`,
          environmentId: `env_${index % 2}`,
          image: `registry.example/acme/web:${batch}`,
          replicas: Math.floor(choice * 4),
          port: 8000 + Math.floor(choice * 3),
        }),
      );
  }
}

/** What is wanted is there and reported, pod by pod. */
async function assertSettled({ admin, cluster }: Region): Promise<void> {
  const rows = await admin.deployments(region);
  const running = rows.filter(({ desired }) => desired === "running").map(({ spec }) => spec);
  const sets = (await cluster.api.list(replicaSets, {}, never)).items;
  assert.deepEqual(
    sets.map(({ metadata, spec, status }) => [
      metadata?.name,
      spec?.template?.spec?.containers[0]?.image,
      spec?.replicas,
      status?.readyReplicas ?? 0,
    ]),
    running.map(({ k8sName, image, replicas }) => [k8sName, image, replicas, replicas]).sort(),
  );
  const policies = (await cluster.api.list(ciliumNetworkPolicies, {}, never)).items;
  const open = policies.map((policy) => [...JSON.stringify(policy.spec).matchAll(/"port":"(\d+)"/g)]);
  assert.deepEqual(
    open.map((ports) => ports.map(([, port]) => Number(port)).sort()),
    ["env_0", "env_1"].map((environment) => {
      const users = running.filter(({ environmentId }) => environmentId === environment);
      return [...new Set(users.map(({ port }) => port))].sort();
    }),
  );
  const live = (await cluster.api.list(pods, {}, never)).items.map(({ metadata }) => metadata?.name ?? "");
  const reports = await Promise.all(rows.map(({ id }) => admin.deploymentReport(region, id)));
  assert.deepEqual(
    reports.map((report) => report?.exists),
    rows.map(({ desired }) => desired === "running"),
  );
  const instances = reports.flatMap((report) => report?.instances ?? []);
  assert.deepEqual(instances.map(({ k8sName }) => k8sName).sort(), live.sort());
  assert.ok(instances.every(({ status }) => status === InstanceStatus.RUNNING));
}

/** All that is alike in two runs: pods have names and addresses of their own in each. */
async function endOf({ admin, cluster }: Region): Promise<Ending> {
  const objects = [
    ...(await cluster.api.list(replicaSets, {}, never)).items,
    ...(await cluster.api.list(ciliumNetworkPolicies, {}, never)).items,
  ];
  const reports = (await admin.deployments(region)).map(async ({ id }) => {
    const { exists, instances = [] } = (await admin.deploymentReport(region, id)) ?? {};
    const facts = instances.map(({ status, cpuMillicores, memoryMib }) => [
      status,
      Number(cpuMillicores),
      Number(memoryMib),
    ]);
    return JSON.stringify([id, exists, facts]);
  });
  return {
    cluster: objects.map(({ metadata, spec }) => {
      const { name, namespace, labels, annotations: all } = metadata ?? {};
      // Each world has its own key.
      const { [annotationKeys.seal]: _, ...annotations } = all ?? {};
      return JSON.stringify([namespace, name, labels, annotations, spec]);
    }),
    reports: await Promise.all(reports),
  };
}

/** Calls back for every write of the agent before it takes effect; returns what went back (K3). */
function onWrite({ server }: ServedCluster, tell: (number: number) => "hang" | undefined): string[] {
  let count = 0;
  const newest = new Map<string, number>();
  const wentBack: string[] = [];
  server.faults.intercept(({ userAgent = "", method, path, body }) => {
    if (!userAgent.startsWith("krane/") || method === "GET") return undefined;
    const batch = Number(/"registry\.example\/acme\/web:(\d+)"/.exec(JSON.stringify(body))?.[1] ?? -1);
    if (batch >= 0 && batch < (newest.get(path) ?? 0)) wentBack.push(`${path} to ${batch}`);
    if (batch >= 0) newest.set(path, batch);
    count += 1;
    return tell(count);
  });
  return wentBack;
}

/** Runs the whole script; with a point, the agent is killed at that request and another one started. */
async function run(t: TestContext, program: string, point?: number): Promise<Ending> {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const { admin, running } = await serveControlPlane(t, "h2c");
  const folder = await mkdtemp(join(tmpdir(), "krane-killed-"));
  t.after(() => rm(folder, { recursive: true }));
  const kubeconfigPath = join(folder, "kubeconfig");
  await writeFile(kubeconfigPath, cluster.kubeconfig);
  const controlPlane = { url: running?.url ?? assert.fail("it is not served"), token };
  const place = { program, region, controlPlane, kubeconfigPath, agentToken };
  // The next agent would wait until the lease of the killed one expires, and renewals would count as writes.
  const start = () => startAgentProcess(t, place, { UNKEY_LEASE: "off" });

  const first = await start();
  let current: Promise<AgentProcess> = Promise.resolve(first);
  const wentBack = onWrite(cluster, (number) => {
    if (number !== point) return undefined;
    first.kill();
    current = first.gone.then(start);
    // Either the request is lost, or it takes effect and its response is lost.
    return point % 2 === 0 ? undefined : "hang";
  });
  for (let batch = 0; batch < batches; batch++) {
    await changeAll(admin, batch);
    await eventually(`batch ${batch} is settled`, () => assertSettled({ admin, cluster }));
  }
  const last = await current;
  assert.equal(last !== first, point !== undefined);
  assert.deepEqual(wentBack, []);
  await last.stop();
  return endOf({ admin, cluster });
}

test("an agent that is killed and started again changes nothing in the end", async (t) => {
  const { program, remove } = await buildKrane();
  t.after(remove);
  const undisturbed = await run(t, program);
  for (const point of points)
    await t.test(
      `killed at request ${point}, ${point % 2 === 0 ? "which takes effect" : "which is lost"}`,
      async (t) => {
        assert.deepEqual(await run(t, program, point), undisturbed);
      },
    );
});
