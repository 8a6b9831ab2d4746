import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import {
  GetDesiredDigestResponseSchema,
  type ListDesiredContentsResponse,
  ListDesiredContentsResponseSchema,
} from "../gen/ctrl/v1/digest_pb.ts";
import { BucketSums, bucketCount, bucketOf, decodeSums, encodeSums } from "../model/digest.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { DesiredStore } from "./desired-store.ts";
import { DigestComparison } from "./digest-comparison.ts";

const never = new AbortController().signal;
const allBuckets = [...Array(bucketCount).keys()];

/** The wanted objects of a control plane: id to version and content. */
type Rows = Map<string, { version: bigint; content: string }>;

const hashOf = (content: string) => Buffer.from(`hash of ${content}`);
const messageOf = (id: string, { version, content }: { version: bigint; content: string }) => ({
  key: `one/${id}`,
  id,
  version,
  want: { kind: "apply", spec: content } as const,
  content: { id, hash: hashOf(content).toString("latin1") },
});

/** A control plane with a digest that is right unless it is changed, and an agent's store that heard of everything. */
function setUp(ids: readonly string[], { perCall = bucketCount } = {}) {
  const rows: Rows = new Map(ids.map((id, index) => [id, { version: BigInt(index + 1), content: "first" }]));
  const store = new DesiredStore<string>(
    new FakeClock(),
    () => undefined,
    () => true,
  );
  for (const [id, row] of rows) store.receive(messageOf(id, row));
  const calls = { digest: 0, contents: 0, entries: 0 };
  const lies = new Map<number, bigint>();
  const sums = () => {
    const all = new BucketSums();
    for (const [id, { version, content }] of rows) all.add({ id, version, hash: hashOf(content) });
    return all.all().map((sum, bucket) => lies.get(bucket) ?? sum);
  };
  const source = {
    async digest(known: Uint8Array) {
      calls.digest += 1;
      const buckets = sums();
      const sum = encodeSums([buckets.reduce((one, other) => one + other, 0n) % 2n ** 256n]);
      const isSame = Buffer.compare(sum, known) === 0;
      return create(GetDesiredDigestResponseSchema, {
        sum,
        ...(!isSame && { buckets: encodeSums(buckets) }),
      });
    },
    async contents(numbers: readonly number[]): Promise<ListDesiredContentsResponse> {
      calls.contents += 1;
      const buckets = numbers.slice(0, perCall).map((number) => ({
        number,
        sum: encodeSums([sums()[number] ?? 0n]),
        entries: [...rows].flatMap(([id, { version, content }]) =>
          bucketOf(id) === number ? [{ id, version, hash: hashOf(content) }] : [],
        ),
      }));
      calls.entries += buckets.reduce((count, { entries }) => count + entries.length, 0);
      return create(ListDesiredContentsResponseSchema, { buckets });
    },
  };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: process.version });
  const deps = { controller: "deployments", source, store, log: createQuietLog(), metrics };
  const comparison = new DigestComparison(deps);
  const objects = () => [...store.entries()].map(({ key, id = "" }) => ({ key, id }));
  const compare = (more: { key: string; id: string }[] = []) =>
    comparison.compare([...objects(), ...more], never).then((found) => found ?? assert.fail("unusable"));
  const wrongCount = async () =>
    (await metrics.render()).match(/digests_wrong_total\{[^}]*\} [1-9]\d*/g)?.length ?? 0;
  return { rows, store, calls, lies, source, comparison, objects, compare, wrongCount };
}

const ids = Array.from({ length: 300 }, (_, index) => `d_${index}`);

test("a pass in sync is one call, whatever there is", async () => {
  const { compare, calls } = setUp(ids);
  const { confirmed, absent, listed } = await compare();
  assert.deepEqual([confirmed.size, absent.size, listed.size], [ids.length, 0, 0]);
  assert.deepEqual(calls, { digest: 1, contents: 0, entries: 0 });
});

test("a changed, a flipped, a missing and a new row are each found in one pass, and only their buckets are listed", async () => {
  const changes: Record<string, (rows: Rows) => void> = {
    changed: (rows) => rows.set("d_7", { version: 900n, content: "second" }),
    // Without a new version.
    flipped: (rows) => rows.set("d_7", { version: 8n, content: "second" }),
    missing: (rows) => rows.delete("d_7"),
    new: (rows) => rows.set("d_new", { version: 900n, content: "first" }),
  };
  for (const [name, change] of Object.entries(changes)) {
    const { rows, compare, calls } = setUp(ids);
    change(rows);
    const { confirmed, absent, listed } = await compare();
    const isNew = name === "new";
    assert.equal(confirmed.has("one/d_7"), isNew, name);
    assert.equal(confirmed.size, isNew ? ids.length : ids.length - 1, name);
    assert.deepEqual([...absent], name === "missing" ? ["one/d_7"] : [], name);
    assert.equal(listed.has(isNew ? "d_new" : "d_7"), name !== "missing", name);
    assert.deepEqual([calls.digest, calls.contents], [1, 1], name);
    assert.ok(calls.entries < 10, name);
  }
});

test("an object in the cluster that the digest does not name is looked up in a list", async () => {
  const { compare, calls } = setUp(ids);
  const { confirmed, absent } = await compare([{ key: "one/stray", id: "d_stray" }]);
  assert.deepEqual([confirmed.size, [...absent]], [ids.length, ["one/stray"]]);
  assert.deepEqual([calls.digest, calls.contents], [1, 1]);
});

test("a key that stands for another id than the one in the digest is not confirmed", async () => {
  const { comparison } = setUp(["d_1"]);
  const found = await comparison.compare([{ key: "one/d_1", id: "d_2" }], never);
  assert.deepEqual([found?.confirmed.size, [...(found?.absent ?? [])]], [0, ["one/d_1"]]);
});

test("a digest that is not that of the rows is noticed in a list, told, and no sum of it counts", async () => {
  const { lies, rows, compare, wrongCount } = setUp(ids);
  rows.delete("d_7");
  // It still has the sum with the missing row, and that of another bucket is wrong.
  const sums = new BucketSums();
  for (const [index, id] of ids.entries())
    sums.add({ id, version: BigInt(index + 1), hash: hashOf("first") });
  lies.set(bucketOf("d_7"), sums.get(bucketOf("d_7")));
  assert.equal((await compare()).confirmed.size, ids.length, "equal sums hide it until something is listed");
  const other = ids.find((id) => bucketOf(id) !== bucketOf("d_7")) ?? "";
  lies.set(bucketOf(other), 5n);
  const { confirmed, absent } = await compare();
  assert.deepEqual([confirmed.size, [...absent]], [ids.length - 1, ["one/d_7"]]);
  assert.equal(await wrongCount(), 1);
});

test("everything is listed now and then, so that equal sums hide nothing for ever", async () => {
  const { lies, rows, compare, wrongCount, calls } = setUp(["d_7", "d_8"]);
  rows.delete("d_7");
  const right = new BucketSums();
  right.add({ id: "d_7", version: 1n, hash: hashOf("first") });
  right.add({ id: "d_8", version: 2n, hash: hashOf("first") });
  for (const bucket of allBuckets) lies.set(bucket, right.get(bucket));
  for (let pass = 1; pass < 60; pass++) assert.equal((await compare()).absent.size, 0);
  assert.equal(calls.contents, 0);
  assert.deepEqual([...(await compare()).absent], ["one/d_7"]);
  assert.equal(await wrongCount(), 1);
});

test("a list that comes in parts is put together", async () => {
  const { rows, compare, calls } = setUp(ids, { perCall: 100 });
  for (const id of ids) rows.set(id, { version: 900n, content: id });
  const { confirmed, listed } = await compare();
  assert.deepEqual([confirmed.size, listed.size], [0, ids.length]);
  assert.equal(calls.contents, Math.ceil(new Set(ids.map(bucketOf)).size / 100));
});

test("a response that makes no sense is a failure, and a failed call is passed on", async () => {
  const { rows, source, comparison, objects } = setUp(ids);
  rows.delete("d_7");
  const compare = () => comparison.compare(objects(), never);
  const { digest, contents } = source;
  const answers = [
    { buckets: new Uint8Array(32 * 255) },
    { buckets: new Uint8Array(31) },
    { sum: new Uint8Array(0) },
    { sum: new Uint8Array(64) },
  ];
  for (const wrong of answers) {
    source.digest = async (known) => Object.assign(await digest(known), wrong);
    await assert.rejects(compare(), ControlPlaneError);
  }
  source.digest = digest;
  source.contents = async () => create(ListDesiredContentsResponseSchema, {});
  await assert.rejects(compare(), ControlPlaneError, "nothing is listed");
  source.contents = async (numbers) => {
    const answer = await contents(numbers);
    for (const bucket of answer.buckets) bucket.number = (bucket.number + 1) % bucketCount;
    return answer;
  };
  await assert.rejects(compare(), ControlPlaneError, "other buckets than those that the objects are in");
  source.contents = async () => Promise.reject(new Error("down"));
  await assert.rejects(compare(), /down/);
});

type Act = { readonly act: "put" | "delete" | "lose" | "replay" | "renew"; readonly id: string };
const act: fc.Arbitrary<Act> = fc.record({
  act: fc.constantFrom("put", "put", "put", "delete", "lose", "replay", "renew"),
  id: fc.constantFrom("a", "b", "c", "d", "e"),
});

test("after any changes, losses, replays and new incarnations, a pass finds exactly what differs, and a replay mends it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
      const { rows, store, compare } = setUp([]);
      let version = 0n;
      const replay = () => {
        for (const [id, row] of rows) store.receive(messageOf(id, row));
      };
      for (const { act, id } of acts) {
        version += 1n;
        const isLost = act === "lose";
        if (act === "put" || isLost) rows.set(id, { version, content: `${version}` });
        if (act === "delete") {
          rows.delete(id);
          store.receive({ key: `one/${id}`, id: undefined, version, want: { kind: "delete" } });
        } else if (act === "put") store.receive(messageOf(id, rows.get(id) ?? assert.fail()));
        else if (act === "replay") replay();
        else if (act === "renew") {
          store.startOver();
          replay();
        }
        assert.equal(store.verifyDigest(), true);
      }
      const { confirmed } = await compare();
      for (const [id, row] of rows) {
        const entry = store.get(`one/${id}`);
        assert.equal(confirmed.has(`one/${id}`), entry?.version === row.version, id);
      }
      replay();
      const sums = new BucketSums();
      for (const [id, { version, content }] of rows) sums.add({ id, version, hash: hashOf(content) });
      assert.deepEqual(store.digest.all(), sums.all());
      assert.deepEqual(decodeSums(encodeSums(sums.all())), sums.all());
    }),
  );
});
