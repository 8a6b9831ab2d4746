import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  GetObjectRequestSchema,
  ListObjectsRequestSchema,
  ObjectKind,
  ObjectViewSchema,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { ApplyInit } from "../../kinds/kinds.ts";
import { createSpec } from "../kind-messages.ts";
import { MemoryStore } from "../memory-store.ts";
import { getObject, listObjects } from "./object-reads.ts";

const region = "local.dev";
const { signal } = new AbortController();

/** Counts what is read of it. */
class CountedStore extends MemoryStore {
  readonly batches: number[] = [];

  override async objects(...query: Parameters<MemoryStore["objects"]>) {
    const objects = await super.objects(...query);
    this.batches.push(objects.length);
    // As the types of the store have it, where a query is for one kind.
    return objects as never;
  }
}

async function storeOf(count: number, more: (index: number) => ApplyInit<"deployment"> = () => ({})) {
  const store = new CountedStore();
  await store.registerRegion(region);
  for (let index = 0; index < count; index++) {
    const id = `d_${String(index).padStart(5, "0")}`;
    const spec = {
      deploymentId: id,
      k8sName: id,
      k8sNamespace: "one",
      ...more(index),
    } as ApplyInit<"deployment">;
    await store.put(region, "deployment", createSpec("deployment", spec), { by: "", atMs: 0 });
  }
  return store;
}

async function pagesOf(store: CountedStore, query: { pageSize?: number; environmentId?: string }) {
  const pages: (readonly { readonly ref?: { readonly id: string } | undefined }[])[] = [];
  let [pageToken, bytesMax] = ["", 0];
  do {
    const request = create(ListObjectsRequestSchema, {
      region,
      kind: ObjectKind.DEPLOYMENT,
      ...query,
      pageToken,
    });
    const answer = await listObjects(store, request, signal);
    const bytes = answer.objects.reduce((sum, view) => sum + toBinary(ObjectViewSchema, view).length, 0);
    bytesMax = Math.max(bytesMax, bytes);
    pages.push(answer.objects);
    pageToken = answer.nextPageToken;
  } while (pageToken !== "");
  return { pages, bytesMax };
}

test("a small page reads no more than it needs", async () => {
  const store = await storeOf(300);
  const request = create(ListObjectsRequestSchema, { region, kind: ObjectKind.DEPLOYMENT, pageSize: 1 });
  const { objects, nextPageToken } = await listObjects(store, request, signal);
  assert.deepEqual([objects.length, nextPageToken !== "", store.batches], [1, true, [2]]);
});

test("every object is on exactly one page, and the last page has no next token", async () => {
  const { pages } = await pagesOf(await storeOf(250), { pageSize: 125 });
  assert.deepEqual(
    pages.map(({ length }) => length),
    [125, 125],
  );
  assert.equal(new Set(pages.flat().map(({ ref }) => ref?.id)).size, 250);
});

test("a page of large objects ends before it is too large for a client", async () => {
  const store = await storeOf(9, () => ({ image: "x".repeat(1_500_000) }));
  const { pages, bytesMax } = await pagesOf(store, {});
  assert.equal(pages.flat().length, 9);
  assert.ok(bytesMax < 5_000_000, `${bytesMax} bytes`);
});

test("a filter with few matches ends its page after a number of objects, and the next page continues", async () => {
  const store = await storeOf(4_100, (index) => ({
    environmentId: index === 4_050 ? "env_rare" : "env_other",
  }));
  const { pages } = await pagesOf(store, { environmentId: "env_rare" });
  assert.deepEqual(
    pages.map((views) => views.map(({ ref }) => ref?.id)),
    [[], [], ["d_04050"]],
  );
  assert.ok(Math.max(...store.batches) <= 100);
});

test("an agent that restarts does not undo what was settled", async () => {
  const store = await storeOf(2);
  const [wanted, stopped] = ["d_00000", "d_00001"] as const;
  await store.stop(region, "deployment", stopped, { by: "", atMs: 0 });
  const instances = [create(InstanceSchema, { k8sName: "pod", status: Status.RUNNING })];
  await store.edit(region, "deployment", wanted, (spec) => ({ ...spec, replicas: 1 }), { by: "", atMs: 0 });
  await store.report(region, "deployment", { name: wanted, id: "" }, { exists: true, instances, atMs: 0 });
  const report = (instanceId: string, cursor: bigint) => {
    const state = { instanceId, controllers: [{ name: "deployments", stream: { cursor } }] };
    return store.reportAgent(region, { report: create(ReportAgentStateRequestSchema, { state }), atMs: 0 });
  };
  const phases = async () => {
    const refs = [wanted, stopped].map((id) => ({ region, kind: ObjectKind.DEPLOYMENT, id }));
    const answers = refs.map((ref) => getObject(store, create(GetObjectRequestSchema, { ref })));
    return (await Promise.all(answers)).map(({ object }) => object?.phase);
  };
  await report("ins_1", 4n);
  assert.deepEqual(await phases(), [Phase.READY, Phase.DELETED]);
  await report("ins_2", 0n);
  assert.deepEqual(await phases(), [Phase.READY, Phase.DELETED]);
});

test("a cancelled list stops reading", async () => {
  const store = await storeOf(300);
  const left = new AbortController();
  left.abort(new Error("gone"));
  const request = create(ListObjectsRequestSchema, { region });
  await assert.rejects(listObjects(store, request, left.signal), /gone/);
  assert.deepEqual(store.batches, []);
});

test("objects are read by their ids in one call; what does not exist is left out", async () => {
  const store = await storeOf(30);
  const list = async (ids: string[]) =>
    listObjects(
      store,
      create(ListObjectsRequestSchema, { region, kind: ObjectKind.DEPLOYMENT, ids }),
      signal,
    );
  const { objects, nextPageToken } = await list(["d_00021", "d_never", "d_00003"]);
  assert.deepEqual([objects.map(({ ref }) => ref?.id), nextPageToken], [["d_00003", "d_00021"], ""]);
  await assert.rejects(
    list(Array.from({ length: 501 }, (_, index) => String(index))),
    /ids must be at most 500/,
  );
});
