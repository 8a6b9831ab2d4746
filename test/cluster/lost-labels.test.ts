// A namespace admin removes the labels that krane's watches select by, on a real API server, against an agent with the
// chart's rights and its admission policy: what runs stays known, gets its labels back, and is deleted on order.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { labelKeys } from "../../src/model/labels.ts";
import { defaultOptions, deployment, region } from "../simulation/simulated-region.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const tenant = "tenant-of-acme";
const asTenant = [`--as=${tenant}`, "-n", "acme"];
const watchOnly = { resyncMs: 0, replayMs: 0 };
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

async function replicaSetField(name: string, path: string): Promise<string> {
  return cluster.kubectl(["-n", "acme", "get", "replicaset", name, "-o", `jsonpath={${path}}`]);
}

async function labelOf(name: string, label: string): Promise<string> {
  return replicaSetField(name, `.metadata.labels.${label.replaceAll(".", "\\.")}`);
}

const strip = (name: string, ...labels: string[]) =>
  cluster.kubectl([...asTenant, "label", "replicaset", name, ...labels.map((label) => `${label}-`)]);

async function hasLabels(name: string): Promise<void> {
  assert.equal(await labelOf(name, labelKeys.managedBy), "krane");
  assert.equal(await labelOf(name, labelKeys.component), "deployment");
}

test("labels that a tenant removes come back; nothing is reported gone that runs, and a Delete finds it", async (t) => {
  const plane = await createRegionPlane();
  for (const index of [1, 2, 3]) await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  const parts = { cluster, account, plane };
  const first = await startClusterController(t, parts, watchOnly);
  const instancesOf = async (id: string) => (await plane.admin.instances(region, id)).length;
  await eventually("all run", async () => {
    for (const id of ["d_1", "d_2", "d_3"]) assert.equal(await instancesOf(id), 1);
  });
  await cluster.kubectl([
    ...["-n", "acme", "create", "rolebinding", tenant],
    ...["--clusterrole=admin", `--user=${tenant}`],
  ]);
  const uid = await replicaSetField("web-1", ".metadata.uid");

  await strip("web-1", labelKeys.managedBy);
  await eventually("the label is back", () => hasLabels("web-1"));
  await strip("web-1", labelKeys.component, labelKeys.deploymentId);
  await eventually("both labels are back", () => hasLabels("web-1"));
  assert.equal(await replicaSetField("web-1", ".metadata.uid"), uid);
  assert.equal((await plane.admin.deploymentReport(region, "d_1"))?.exists, true);
  const [repair] = first.kept.of("repaired an object");
  assert.equal(repair?.["field"], `metadata.labels["${labelKeys.managedBy}"]`);

  // A pod that its ReplicaSet counts is counted by krane.
  const pod = (
    await cluster.kubectl(["-n", "acme", "get", "pods", "-l", `${labelKeys.deploymentId}=d_2`, "-o", "name"])
  ).trim();
  await cluster.kubectl([...asTenant, "label", pod, `${labelKeys.managedBy}-`, `${labelKeys.component}-`]);

  // While no krane looks, and then an order to delete it.
  await first.stop();
  await strip("web-2", labelKeys.managedBy, labelKeys.component);
  const second = await startClusterController(t, parts, watchOnly);
  await plane.admin.deleteDeployment(region, "d_2");
  await eventually("its ReplicaSet and its pod are gone", async () => {
    const names = await cluster.kubectl(["-n", "acme", "get", "replicasets,pods", "-o", "name"]);
    assert.doesNotMatch(names, /web-2/);
  });
  await eventually("that is reported", async () =>
    assert.equal((await plane.admin.deploymentReport(region, "d_2"))?.exists, false),
  );
  await second.stop();
});

test("a ReplicaSet that lost its labels while no krane ran is found by its pods, and is not forgotten", async (t) => {
  const plane = await createRegionPlane();
  for (const index of [1, 3]) await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  const parts = { cluster, account, plane };
  await plane.admin.forgetDeployment(region, "d_3");
  await strip("web-3", labelKeys.managedBy);
  const deletion = { ...defaultOptions.deletion, minimumAgeMs: 0 };
  const { kept } = await startClusterController(t, parts, { deletion, resyncMs: 1_000 });
  await eventually("it is deleted, because the control plane does not know it", async () => {
    assert.doesNotMatch(await cluster.kubectl(["-n", "acme", "get", "replicasets", "-o", "name"]), /web-3/);
  });
  const [deleted] = kept.of("deleted an object").filter(({ kind }) => kind === "ReplicaSet");
  assert.deepEqual([deleted?.["name"], deleted?.["authority"]], ["web-3", "confirmed absence"]);
  assert.equal(kept.of("repaired an object").length, 1);
});
