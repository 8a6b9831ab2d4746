import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { EnvironmentSchema, ListEnvironmentsRequestSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { MemoryStore } from "../memory-store.ts";
import { listEnvironments } from "./environments.ts";

const region = "local.dev";
const { signal } = new AbortController();
const author = { by: "ann", atMs: 0 };

async function storeOf(count: number, namesBytes = 0) {
  const store = new MemoryStore();
  await store.registerRegion(region);
  const secrets = new Map(namesBytes === 0 ? [] : [["K".repeat(namesBytes), "sealed"]]);
  for (let index = 0; index < count; index++) {
    const id = `env_${String(index).padStart(5, "0")}`;
    await store.changeEnvironment(region, id, () => ({ workspaceId: "w", projectId: "p", secrets }), author);
  }
  return store;
}

const list = (store: MemoryStore, query: { pageSize?: number; pageToken?: string } = {}) =>
  listEnvironments(store, create(ListEnvironmentsRequestSchema, { region, ...query }), signal);

async function pagesOf(store: MemoryStore, pageSize: number) {
  const pages: Awaited<ReturnType<typeof list>>["environments"][] = [];
  let pageToken = "";
  do {
    const answer = await list(store, { pageSize, pageToken });
    pages.push(answer.environments);
    pageToken = answer.nextPageToken;
  } while (pageToken !== "");
  return pages;
}

test("every environment is on exactly one page, and the last page has no next token", async () => {
  const pages = await pagesOf(await storeOf(130), 65);
  assert.deepEqual(
    pages.map(({ length }) => length),
    [65, 65],
  );
  const ids = pages.flat().map(({ id }) => id);
  assert.deepEqual(ids, [...new Set(ids)].sort());
  assert.equal(ids.length, 130);
});

test("a page continues after the last environment, even if that was deleted meanwhile", async () => {
  const store = await storeOf(4);
  const { nextPageToken: pageToken } = await list(store, { pageSize: 2 });
  await store.removeEnvironment(region, "env_00001", author);
  const { environments } = await list(store, { pageSize: 2, pageToken });
  assert.deepEqual(
    environments.map(({ id }) => id),
    ["env_00002", "env_00003"],
  );
});

test("a page of large environments ends before it is too large for a client", async () => {
  const pages = await pagesOf(await storeOf(9, 1_500_000), 500);
  assert.equal(pages.flat().length, 9);
  for (const page of pages) {
    const bytes = page.reduce((sum, each) => sum + toBinary(EnvironmentSchema, each).length, 0);
    assert.ok(bytes < 5_000_000, `${bytes} bytes`);
  }
});

test("without pages all come at once, or none with a word about pages", async () => {
  const { environments, nextPageToken } = await list(await storeOf(1_001));
  assert.deepEqual([environments.length, nextPageToken], [1_001, ""]);
  const isTooLarge = (error: unknown) =>
    error instanceof ConnectError && error.code === Code.ResourceExhausted && /page_size/.test(error.message);
  await assert.rejects(list(await storeOf(12, 1_500_000)), isTooLarge);
});
