// A namespace admin undoes whatever krane does, on a real API server: krane answers a few times, then seldom, and says
// what happens. Its neighbours notice nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createKubeApi } from "../../src/kube/client.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { deployment, region } from "../simulation/simulated-region.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;
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

test("somebody who deletes whatever krane creates gets a few answers and is announced; others do not wait", async (t) => {
  const { transport } = realServerTarget(cluster);
  const api = createKubeApi(transport);
  t.after(() => transport.close());
  const plane = await createRegionPlane();
  for (const index of [1, 2]) await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  const parts = { cluster, account, plane };
  const { controller, api: recorded } = await startClusterController(t, parts, watchOnly);
  const liveSet = (name: string) => api.get(replicaSets, { namespace: "acme", name }, {}, never);
  await eventually("both are there", async () => {
    assert.ok(await liveSet("web-1"), "web-1");
    assert.ok(await liveSet("web-2"), "web-2");
  });

  // Until krane pauses: each deletion is answered by a creation, or by none.
  const reasonOf = () => controller.objects({ onlyTroubled: true }).at(0)?.reason ?? "";
  const uids = new Set<string>();
  await eventually("krane pauses and says why", async () => {
    const live = await liveSet("web-1");
    if (live !== undefined) {
      uids.add(live.metadata?.uid ?? "");
      await api.delete(replicaSets, { namespace: "acme", name: "web-1" }, {}, never);
    }
    assert.match(reasonOf(), /^an unknown client keeps deleting ReplicaSet acme\/web-1 since 20/);
  });
  assert.ok(uids.size >= 2 && uids.size <= 5, `${uids.size} creations before the first pause`);
  await eventually("that is an Event", async () => {
    const events = await cluster.kubectl([
      "-n",
      "acme",
      "get",
      "events",
      "-o",
      "jsonpath={.items[*].reason}",
    ]);
    assert.match(events, /Contested/);
  });

  // A neighbour changes meanwhile, and krane applies that without a pause.
  await plane.admin.setDeployment(region, deployment(2, { replicas: 3 }));
  await eventually("the neighbour is changed", async () =>
    assert.equal((await liveSet("web-2"))?.spec?.replicas, 3),
  );
  const creations = recorded.writes.filter(({ kind, key }) => kind === "ReplicaSet" && key === "acme/web-1");
  assert.ok(creations.length <= 6, `${creations.length} writes of the contested ReplicaSet`);
  // The control plane has the last word, in the middle of the fight.
  await plane.admin.setDeployment(region, deployment(1, { replicas: 2 }));
  await eventually("the new version is there", async () =>
    assert.equal((await liveSet("web-1"))?.spec?.replicas, 2),
  );
});
