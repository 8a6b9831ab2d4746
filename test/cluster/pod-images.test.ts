// A namespace admin gives a running pod another image, on a real API server: krane does not call it current.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { labelKeys } from "../../src/model/labels.ts";
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

test("a pod that gets another image counts as outdated, also if it got the name of its creator", async (t) => {
  const plane = await createRegionPlane();
  await plane.admin.setDeployment(region, deployment(1, { replicas: 2 }));
  await startClusterController(t, { cluster, account, plane }, { resyncMs: 0, replayMs: 0 });
  const outdated = async () => {
    const instances = await plane.admin.instances(region, "d_1");
    return instances.map((one) => one.outdated).sort();
  };
  await eventually("both are current", async () => assert.deepEqual(await outdated(), [false, false]));
  await cluster.kubectl([
    ...["-n", "acme", "create", "rolebinding", tenant],
    ...["--clusterrole=admin", `--user=${tenant}`],
  ]);
  const label = `${labelKeys.deploymentId}=d_1`;
  const names = await cluster.kubectl(["-n", "acme", "get", "pods", "-l", label, "-o", "name"]);
  const [one = "", two = ""] = names.trim().split("\n");
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
