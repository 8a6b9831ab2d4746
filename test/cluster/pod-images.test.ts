// A namespace admin gives a running pod another image, or an old one the mark of the new template, on a real API server: krane
// does not call it current.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { annotationKeys, labelKeys } from "../../src/model/labels.ts";
import { deployment, region } from "../simulation/simulated-region.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const tenant = "tenant-of-acme";
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

async function letAdminister(): Promise<void> {
  await cluster.kubectl([
    ...["-n", "acme", "create", "rolebinding", tenant],
    ...["--clusterrole=admin", `--user=${tenant}`],
  ]);
}

async function podsOf(id: string): Promise<readonly string[]> {
  const label = `${labelKeys.deploymentId}=${id}`;
  const names = await cluster.kubectl(["-n", "acme", "get", "pods", "-l", label, "-o", "name"]);
  return names.trim().split("\n");
}

test("a pod that gets another image counts as outdated, also if it got the name of its creator", async (t) => {
  const plane = await createRegionPlane();
  await plane.admin.setDeployment(region, deployment(1, { replicas: 2 }));
  await startClusterController(t, { cluster, account, plane }, { resyncMs: 0, replayMs: 0 });
  const outdated = async () => {
    const instances = await plane.admin.instances(region, "d_1");
    return instances.map((one) => one.outdated).sort();
  };
  await eventually("both are current", async () => assert.deepEqual(await outdated(), [false, false]));
  await letAdminister();
  const [one = "", two = ""] = await podsOf("d_1");
  const setImage = (pod: string, manager: string) =>
    cluster.kubectl([
      ...[`--as=${tenant}`, "-n", "acme", "set", "image", pod, "deployment=evil.example/miner:1"],
      `--field-manager=${manager}`,
    ]);
  const at = await cluster.kubectl([
    "-n",
    "acme",
    "get",
    two,
    "-o",
    "jsonpath={.metadata.creationTimestamp}",
  ]);
  await eventually("an edit cannot be taken for the creation", async () =>
    assert.ok(createSystemClock().wallMs() > Date.parse(at) + 3_000, "it can"),
  );
  await setImage(one, "kubectl-set");
  await eventually("one is outdated", async () => assert.deepEqual(await outdated(), [false, true]));
  await setImage(two, "kube-controller-manager");
  await eventually("both are outdated", async () => assert.deepEqual(await outdated(), [true, true]));
});

test("an older pod that gets the mark of the new template stays outdated", async (t) => {
  const plane = await createRegionPlane();
  await plane.admin.setDeployment(region, deployment(2, { replicas: 1 }));
  await startClusterController(t, { cluster, account, plane }, { resyncMs: 0, replayMs: 0 });
  const isOutdated = async () => (await plane.admin.instances(region, "d_2")).map(({ outdated }) => outdated);
  await eventually("it is current", async () => assert.deepEqual(await isOutdated(), [false]));
  await plane.admin.setDeployment(region, deployment(2, { replicas: 1, cpuMillicores: 500n }));
  await eventually("it is outdated", async () => assert.deepEqual(await isOutdated(), [true]));
  const [pod = ""] = await podsOf("d_2");
  const path = `{.spec.template.metadata.annotations.${annotationKeys.templateHash.replaceAll(".", "\\.")}}`;
  const mark = await cluster.kubectl(["-n", "acme", "get", "replicaset", "web-2", "-o", `jsonpath=${path}`]);
  await cluster.kubectl([
    ...[`--as=${tenant}`, "-n", "acme", "annotate", pod, "--overwrite"],
    `${annotationKeys.templateHash}=${mark}`,
  ]);
  // A restart that is reported shows that the agent has seen the forgery before.
  const { status } = JSON.parse(await cluster.kubectl(["-n", "acme", "get", pod, "-o", "json"]));
  const containerStatuses = [{ ...status.containerStatuses[0], restartCount: 1 }];
  const { status: code } = await cluster.request({
    method: "PATCH",
    path: `/api/v1/namespaces/acme/${pod.replace("pod/", "pods/")}/status`,
    body: { status: { containerStatuses } },
    contentType: "application/strategic-merge-patch+json",
  });
  assert.equal(code, 200);
  const [last] = await eventually("the restart is reported", async () => {
    const instances = await plane.admin.instances(region, "d_2");
    assert.equal(instances[0]?.restarts, 1);
    return instances;
  });
  assert.equal(last?.outdated, true);
});
