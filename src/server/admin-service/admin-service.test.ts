import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import { applyPolicy } from "../../../test/support/policy-messages.ts";
import { DeleteObjectRequestSchema, ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { MemoryStore } from "../memory-store.ts";
import { deleteObject } from "./admin-service.ts";

const region = "local.dev";
const author = { by: "ann", atMs: 0 };
const deploymentId = "d_web";
const web = applyDeployment({ deploymentId, k8sName: "web" });
const policy = (id: string) => applyPolicy({ ciliumNetworkPolicyId: id, k8sName: id.replace("_", "-") });

async function createWorld() {
  const store = new MemoryStore();
  await store.registerRegion(region);
  const recreate = async () => {
    await store.put(region, "deployment", web, author);
  };
  const protect = async (id: string) => {
    await store.put(region, "policy", policy(id), author, { deploymentId });
  };
  await recreate();
  await protect("p_one");
  await protect("p_two");
  const remove = (expectedVersion?: bigint) => {
    const ref = { region, kind: ObjectKind.DEPLOYMENT, id: deploymentId };
    const condition = expectedVersion === undefined ? {} : { expectedVersion };
    return deleteObject(store, create(DeleteObjectRequestSchema, { ref, ...condition }), author);
  };
  const running = async () => {
    const objects = await store.objects(region, "policy", "", 10);
    return objects.filter(({ row }) => row.desired === "running").map(({ row }) => row.id);
  };
  return { store, recreate, protect, remove, running };
}

test("policies that come after the order are for a deployment that is about to come, and stay", async () => {
  const { protect, remove, running } = await createWorld();
  await remove();
  assert.deepEqual(await running(), []);
  await protect("p_new");
  assert.equal((await remove()).version, 4n, "it was ordered before");
  assert.deepEqual(await running(), ["p_new"]);
});

test("a deletion with a version can be repeated, and completes what is left", async () => {
  const { store, remove, running } = await createWorld();
  // As a previous server left it that was stopped halfway.
  await store.stop(region, "deployment", deploymentId, author);
  assert.deepEqual(await running(), ["p_one", "p_two"]);
  assert.equal((await remove(1n)).version, 4n);
  assert.deepEqual(await running(), []);
});

test("a deletion with another version than that of the object is refused", async () => {
  const { remove, running } = await createWorld();
  await assert.rejects(remove(9n), { code: "version_mismatch" });
  assert.deepEqual(await running(), ["p_one", "p_two"]);
});
