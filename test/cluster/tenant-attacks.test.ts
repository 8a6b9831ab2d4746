// What a namespace admin tries against objects of krane's beyond editing their fields, on a real API server, against an agent
// with the chart's rights and its admission policy.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { annotationKeys } from "../../src/model/labels.ts";
import { deployment, region } from "../simulation/simulated-region.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const tenant = "tenant-of-acme";
let account: ServiceAccountAccess;
let plane: Awaited<ReturnType<typeof createRegionPlane>>;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
  plane = await createRegionPlane();
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

/** A command of the tenant; returns what it prints. */
const asTenant = (words: readonly string[], input?: string) =>
  cluster.kubectl([`--as=${tenant}`, "-n", "acme", ...words], input === undefined ? {} : { input });

async function load(name: string): Promise<ReplicaSet> {
  return JSON.parse(await cluster.kubectl(["-n", "acme", "get", "replicaset", name, "-o", "json"]));
}

test("what a tenant does to ReplicaSets is undone, and a Delete ends their pods", async (t) => {
  for (const index of [1, 2, 3, 4])
    await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  const watchOnly = { resyncMs: 0, replayMs: 0 };
  const { controller } = await startClusterController(t, { cluster, account, plane }, watchOnly);
  const trouble = () =>
    controller
      .objects({ onlyTroubled: true })
      .map(({ key, reason }) => `${key}: ${reason}`)
      .join();
  await eventually("all run", async () => {
    for (const id of ["d_1", "d_2", "d_3", "d_4"])
      assert.equal((await plane.admin.instances(region, id)).length, 1);
  });
  await cluster.kubectl([
    ...["-n", "acme", "create", "rolebinding", tenant],
    ...["--clusterrole=admin", `--user=${tenant}`],
  ]);
  const isWhole = async (name: string) => {
    const { metadata, spec } = await load(name);
    assert.ok(metadata?.annotations?.[annotationKeys.seal], `no seal; ${trouble()}`);
    assert.equal(spec?.template?.spec?.hostPID, undefined, trouble());
    assert.equal(
      spec?.template?.spec?.containers[0]?.env?.filter(({ name }) => name === "PORT").length,
      1,
      trouble(),
    );
  };

  await t.test("annotations that leave no room for the seal, with a weaker template", async () => {
    const { metadata, spec, ...rest } = await load("web-1");
    const { resourceVersion: _, ...kept } = metadata ?? {};
    const template = { ...spec?.template, spec: { ...spec?.template?.spec, hostPID: true } };
    const annotations = { bomb: "x".repeat(262_000) };
    const bombed = { ...rest, metadata: { ...kept, annotations }, spec: { ...spec, template } };
    await asTenant(["replace", "-f", "-"], JSON.stringify(bombed));
    await eventually("it is whole", () => isWhole("web-1"));
  });

  await t.test("a variable twice", async () => {
    const { spec } = await load("web-2");
    const [container] = spec?.template?.spec?.containers ?? [];
    const twice = [...(container?.env ?? []), { name: "PORT", value: "1" }];
    const body = [
      { op: "replace", path: "/spec/template/spec/containers/0/env", value: twice },
      { op: "add", path: "/spec/template/spec/hostPID", value: true },
    ];
    await asTenant(["patch", "replicaset", "web-2", "--type=json", "-p", JSON.stringify(body)]);
    await eventually("it is whole", () => isWhole("web-2"));
  });

  await t.test("a finalizer that would orphan its pods", async () => {
    const body = { metadata: { finalizers: ["orphan"] } };
    await asTenant(["patch", "replicaset", "web-3", "--type=merge", "-p", JSON.stringify(body)]);
    await plane.admin.deleteDeployment(region, "d_3");
    await eventually("ReplicaSet and pod are gone", async () => {
      const names = await cluster.kubectl(["-n", "acme", "get", "replicasets,pods", "-o", "name"]);
      assert.doesNotMatch(names, /web-3/);
    });
  });

  await t.test("an owner that does not exist", async () => {
    const owner = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "nobody",
      uid: "00000000-0000-0000-0000-000000000000",
    };
    const body = { metadata: { ownerReferences: [owner] } };
    await asTenant(["patch", "replicaset", "web-4", "--type=merge", "-p", JSON.stringify(body)]);
    await eventually("it is there without that owner", async () => {
      const now = await load("web-4");
      assert.equal(now.metadata?.ownerReferences, undefined, trouble());
    });
  });
});
