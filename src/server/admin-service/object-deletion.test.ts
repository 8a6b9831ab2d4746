import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import { applyPolicy } from "../../../test/support/policy-messages.ts";
import { DeleteObjectRequestSchema, ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Kind } from "../kinds.ts";
import { MemoryStore } from "../memory-store.ts";
import { type Author, type Condition, type Row, StoreError } from "../store.ts";
import { deleteObject } from "./object-deletion.ts";

const region = "local.dev";
const author = { by: "ann", atMs: 0 };
const deploymentId = "d_web";
const web = applyDeployment({ deploymentId, k8sName: "web" });
const policy = (id: string) => applyPolicy({ ciliumNetworkPolicyId: id, k8sName: id.replace("_", "-") });

/** A store in which something else happens before each call of a kind. */
class BusyStore extends MemoryStore {
  beforeRows: () => Promise<void> = async () => undefined;
  beforeStop: () => Promise<void> = async () => undefined;

  override async rows<K extends Kind>(of: string, kind: K): Promise<readonly Row<K>[]> {
    await this.beforeRows();
    return super.rows(of, kind);
  }

  override async stop(of: string, kind: Kind, id: string, by: Author, condition?: Condition) {
    await this.beforeStop();
    return super.stop(of, kind, id, by, condition);
  }
}

async function createWorld() {
  const store = new BusyStore();
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
  const { store, protect, remove, running } = await createWorld();
  store.beforeRows = () => protect("p_new");
  await remove();
  assert.deepEqual(await running(), ["p_new"]);
});

test("a deployment that is wanted again meanwhile keeps the policies that need no change", async () => {
  const { store, recreate, remove, running } = await createWorld();
  store.beforeRows = recreate;
  await remove();
  assert.deepEqual(await running(), ["p_one", "p_two"]);
});

test("a policy that changes while it is to be stopped is left to whoever changed it, and the others go", async () => {
  const { store, remove, running } = await createWorld();
  store.beforeStop = async () => {
    store.beforeStop = async () => undefined;
    await store.put(region, "policy", policy("p_one"), author);
  };
  await remove();
  assert.deepEqual(await running(), ["p_one"]);
});

test("a deletion with a version that ended in the middle is made again, and does the rest", async () => {
  const { store, remove, running } = await createWorld();
  store.beforeStop = () => Promise.reject(new StoreError("unavailable", "the database is away"));
  await assert.rejects(remove(1n), { code: "unavailable" });
  assert.deepEqual(await running(), ["p_one", "p_two"]);
  store.beforeStop = async () => undefined;
  assert.equal((await remove(1n)).version, 4n);
  assert.deepEqual(await running(), []);
});

test("a deletion with another version than that of the object is refused", async () => {
  const { remove, running } = await createWorld();
  await assert.rejects(remove(9n), { code: "version_mismatch" });
  assert.deepEqual(await running(), ["p_one", "p_two"]);
});
