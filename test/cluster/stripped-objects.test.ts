// A namespace admin removes everything at once that shows a ReplicaSet to be krane's, and weakens its template, on a real API
// server, against an agent with the chart's rights and its admission policy.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { annotationKeys, labelKeys } from "../../src/model/labels.ts";
import { deployment, region } from "../simulation/simulated-region.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const tenant = "tenant-of-acme";
const asTenant = [`--as=${tenant}`, "-n", "acme"];
const watchOnly = { resyncMs: 0, replayMs: 0 };
type Agent = Awaited<ReturnType<typeof startClusterController>>;
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

async function load(name: string): Promise<ReplicaSet> {
  return JSON.parse(await cluster.kubectl(["-n", "acme", "get", "replicaset", name, "-o", "json"]));
}

/** One write, so that krane never sees a part of it. */
async function strip(name: string): Promise<void> {
  const { metadata, spec, ...rest } = await load(name);
  const { annotations: _, labels: __, resourceVersion: ___, ...kept } = metadata ?? {};
  const template = { ...spec?.template, spec: { ...spec?.template?.spec, hostPID: true } };
  const stripped = { ...rest, metadata: { ...kept, managedFields: [{}] }, spec: { ...spec, template } };
  await cluster.kubectl([...asTenant, "replace", "-f", "-"], { input: JSON.stringify(stripped) });
}

test("seal, labels and field manager that a tenant removes at once come back, and a Delete finds the ReplicaSet", async (t) => {
  const plane = await createRegionPlane();
  for (const index of [1, 2, 3]) await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  const parts = { cluster, account, plane };
  const first = await startClusterController(t, parts, watchOnly);
  await eventually("all run", async () => {
    for (const id of ["d_1", "d_2", "d_3"]) assert.equal((await plane.admin.instances(region, id)).length, 1);
  });
  await cluster.kubectl([
    ...["-n", "acme", "create", "rolebinding", tenant],
    ...["--clusterrole=admin", `--user=${tenant}`],
  ]);
  const isRepaired = async (name: string, uid: string | undefined, { controller }: Agent) => {
    const { metadata, spec } = await load(name);
    assert.equal(metadata?.uid, uid);
    const troubles = controller.objects({ onlyTroubled: true }).map(({ reason }) => reason);
    assert.equal(metadata?.labels?.[labelKeys.managedBy], "krane", troubles.join());
    assert.ok(metadata?.annotations?.[annotationKeys.seal], "it has no seal");
    assert.equal(spec?.template?.spec?.hostPID, undefined);
  };
  const [one, two] = [await load("web-1"), await load("web-2")];
  // The seal is left, so that only the label and the template are wrong.
  const body = {
    metadata: { labels: { [labelKeys.managedBy]: null } },
    spec: { template: { spec: { hostPID: true } } },
  };
  await cluster.kubectl([
    ...asTenant,
    "patch",
    "replicaset",
    "web-1",
    "--type=merge",
    "-p",
    JSON.stringify(body),
  ]);
  await eventually("label and template are repaired", () => isRepaired("web-1", one.metadata?.uid, first));
  await strip("web-1");
  await eventually("it is repaired", () => isRepaired("web-1", one.metadata?.uid, first));

  await first.stop();
  await strip("web-2");
  await strip("web-3");
  const second = await startClusterController(t, parts, watchOnly);
  await eventually("what was stripped while no krane ran is repaired", () =>
    isRepaired("web-2", two.metadata?.uid, second),
  );

  await second.stop();
  await strip("web-3");
  await plane.admin.deleteDeployment(region, "d_3");
  await startClusterController(t, parts, watchOnly);
  await eventually("its ReplicaSet and its pod are gone", async () => {
    const names = await cluster.kubectl(["-n", "acme", "get", "replicasets,pods", "-o", "name"]);
    assert.doesNotMatch(names, /web-3/);
  });
  await eventually("that is reported", async () =>
    assert.equal((await plane.admin.deploymentReport(region, "d_3"))?.exists, false),
  );
});
