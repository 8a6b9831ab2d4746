import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "@krane/kube-apiserver";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { createInProcessTransport } from "../dev/in-process-transport.ts";
import type { KubeApi } from "../kube/api.ts";
import { createKubeApi } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";
import { createOrderRecords, orderRecordPrefix } from "./kube-order-records.ts";
import type { OrderRecord } from "./order-records.ts";

const never = new AbortController().signal;
const place = { namespace: "krane", region: "us-east-1.aws", controller: "deployments" };

function createApi(): KubeApi {
  const server = createApiServer({ clock: new FakeClock(), random: createSeededRandom(1) });
  return createKubeApi(createInProcessTransport(server, { userAgent: "test" }));
}

function recordsOf(api: KubeApi, overrides: Partial<typeof place> = {}) {
  return createOrderRecords({ ...place, ...overrides }, { api, log: createQuietLog() });
}

function order(number: bigint, overrides: Partial<OrderRecord> = {}): OrderRecord {
  return { key: "acme/web", id: "d_1", number, state: Uint8Array.of(0, 255, Number(number)), ...overrides };
}

test("a record comes back as it was written, whoever reads it", async () => {
  const api = createApi();
  const records = [order(1n), order(2n, { key: "acme/api", id: "d_2", readinessId: "rd_1" })];
  for (const record of records) assert.equal(await recordsOf(api).put(record, never), "done");
  const loaded = await recordsOf(api).load(never);
  const byNumber = [...loaded].sort((a, b) => Number(a.number - b.number));
  assert.deepEqual(byNumber, records);
});

test("regions and controllers do not see each other's records, nor share a record for the same key", async () => {
  const api = createApi();
  const others = [{ region: "eu-west-1.aws" }, { controller: "sentinels" }, { region: "r".repeat(100) }];
  await recordsOf(api).put(order(1n), never);
  for (const other of others) {
    assert.deepEqual(await recordsOf(api, other).load(never), []);
    await recordsOf(api, other).put(order(2n), never);
    assert.deepEqual(await recordsOf(api, other).load(never), [order(2n)]);
  }
  assert.deepEqual(await recordsOf(api).load(never), [order(1n)]);
});

test("an older order does not replace a newer one, and its removal does not remove it", async () => {
  const api = createApi();
  const records = recordsOf(api);
  await records.put(order(5n), never);
  assert.equal(await records.put(order(4n), never), "newer");
  assert.equal(await records.remove("acme/web", 4n, never), "newer");
  assert.deepEqual(await records.load(never), [order(5n)]);
  assert.equal(await records.put(order(6n), never), "done");
  assert.deepEqual(await records.load(never), [order(6n)]);
  assert.equal(await records.remove("acme/web", 6n, never), "done");
  assert.equal(await records.remove("acme/web", 6n, never), "done");
  assert.deepEqual(await records.load(never), []);
});

test("of two processes that write at the same time, the higher number wins", async () => {
  for (const [first, second] of [
    [1n, 2n],
    [2n, 1n],
  ] as const)
    for (const isThere of [false, true]) {
      const api = createApi();
      if (isThere) await recordsOf(api).put(order(0n), never);
      // The second one writes between the read and the write of the first.
      const interrupted: KubeApi = {
        ...api,
        async get(kind, ref, options, signal) {
          const read = await api.get(kind, ref, options, signal);
          interrupted.get = api.get;
          await recordsOf(api).put(order(second), never);
          return read;
        },
      };
      await recordsOf(interrupted).put(order(first), never);
      assert.deepEqual(await recordsOf(api).load(never), [order(2n)]);
    }
});

test("a record that krane did not write is ignored, and can be replaced", async () => {
  const api = createApi();
  const records = recordsOf(api);
  await records.put(order(1n), never);
  const written = (await api.list(configMaps, { namespace: "krane" }, never)).items[0] ?? assert.fail();
  const { labels = {}, name = "" } = written.metadata ?? {};
  assert.ok(name.startsWith(orderRecordPrefix));
  const copy = { ...written, metadata: { namespace: "krane", name: "krane-order-copy", labels } };
  await api.create(configMaps, copy, {}, never);
  assert.deepEqual(await records.load(never), [order(1n)]);
  const broken = { ...written.data, number: "many" };
  await api.patch(
    configMaps,
    written,
    [{ op: "replace", path: "/data", value: broken }],
    { fieldManager: "kubectl" },
    never,
  );
  assert.deepEqual(await records.load(never), []);
  await records.put(order(2n), never);
  assert.deepEqual(await records.load(never), [order(2n)]);
  assert.equal(
    (await api.get(configMaps, { namespace: "krane", name }, {}, never))?.data?.["key"],
    "acme/web",
  );
});
