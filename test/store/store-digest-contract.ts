// What every store keeps for agents that compare instead of asking: digests of what is wanted.
import assert from "node:assert/strict";
import fc from "fast-check";
import { type KindName, kindNames } from "../../src/kinds/kinds.ts";
import { BucketSums, bucketCount, bucketOf, sumOf } from "../../src/model/digest.ts";
import { createSpec } from "../../src/server/kind-messages.ts";
import { type Row, type Store, stateOf } from "../../src/server/store.ts";
import { deployment, type Holds, policy, sentinel, stateAt } from "./store-fixtures.ts";

const author = { by: "ann", atMs: 1 };
const allBuckets = [...Array(bucketCount).keys()];
const digestRow = ({ id, version, contentHash: hash = new Uint8Array() }: Row<KindName>) => ({
  id,
  version,
  hash,
});

/** The digest is that of the rows, and lists exactly them. Computed here without the store's help. */
export async function assertDigest(store: Store, region: string, kind: KindName): Promise<void> {
  const wanted = (await store.rows(region, kind)).filter(({ desired }) => desired !== "stopped");
  const expected = new BucketSums();
  for (const row of wanted) expected.add(digestRow(row));
  const { sum, buckets } = await store.digest(region, kind);
  assert.deepEqual({ sum, buckets }, { sum: expected.whole, buckets: expected.all() }, kind);
  const listed = (await store.contents(region, kind, allBuckets)).buckets;
  assert.deepEqual(
    listed.flatMap(({ rows }) => rows).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    wanted.map(digestRow).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  );
  for (const { number, sum: kept, rows } of listed) {
    assert.equal(kept, sumOf(rows));
    assert.ok(rows.every(({ id }) => bucketOf(id) === number));
  }
}

type Step = {
  readonly act: "put" | "stop" | "remove" | "trim";
  readonly kind: KindName;
  readonly id: string;
  readonly size: number;
  readonly byOther: boolean;
};

const step: fc.Arbitrary<Step> = fc.record({
  act: fc.constantFrom("put", "put", "put", "stop", "remove", "trim"),
  kind: fc.constantFrom(...kindNames),
  id: fc.constantFrom("a", "b", "c", "d"),
  size: fc.integer({ min: 0, max: 3 }),
  byOther: fc.boolean(),
});

async function take(store: Store, region: string, { act, kind, id, size }: Step): Promise<void> {
  if (act === "stop") await store.stop(region, kind, id, author);
  else if (act === "remove") await store.remove(region, kind, id, author);
  else if (act === "trim") await forgetGone(store, region);
  else if (kind === "deployment") await store.put(region, kind, deployment(id, { replicas: size }), author);
  else if (kind === "sentinel") await store.put(region, kind, sentinel(id, { replicas: size }), author);
  else if (kind === "route")
    await store.put(
      region,
      kind,
      createSpec(kind, { k8sNamespace: "acme", k8sName: id, routeId: id, deploymentId: `d${size}` }),
      author,
    );
  else await store.put(region, kind, policy(id, `ns-${id}`), author, { deploymentId: `d${size}` });
}

/** An agent has deleted everything that was stopped, long ago. */
async function forgetGone(store: Store, region: string): Promise<void> {
  const controllers = ["deployments", "sentinels", "cilium", "routes"].map((name) => ({
    name,
    stream: { cursor: 1_000n },
  }));
  await store.reportAgent(region, stateAt(1_000_000, { state: { instanceId: "ins_1", controllers } }));
  for (const nowMs of [1_000, 900_000])
    await store.trimHistory({ ageMaxMs: 1_000, entriesMax: 1_000 }, nowMs);
}

export function defineDigestContract(holds: Holds): void {
  holds(
    "a digest is that of the rows after any changes, and a stream leads to the same one",
    async (open) => {
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
          const region = `${open.region}-${run++}`;
          await open.store.registerRegion(region);
          for (const each of steps) await take(each.byOther ? open.other : open.store, region, each);
          for (const kind of kindNames) {
            await assertDigest(open.store, region, kind);
            await assertDigest(open.other, region, kind);
            assert.equal(
              await streamedSum(open.store, region, kind),
              (await open.store.digest(region, kind)).sum,
            );
          }
          assert.deepEqual(await open.store.verifyDigests(region), []);
        }),
        { numRuns: 15 },
      );
    },
  );

  holds("a digest changes with every change of what is wanted, and with nothing else", async (open) => {
    const { store, region } = open;
    const sum = async () => (await store.digest(region, "deployment")).sum;
    const seen = [await sum()];
    const differs = async (change: () => Promise<unknown>) => {
      await change();
      const now = await sum();
      assert.ok(!seen.includes(now), `${change}`);
      seen.push(now);
    };
    assert.equal(seen[0], 0n);
    await differs(() => store.put(region, "deployment", deployment("a"), author));
    await differs(() => store.put(region, "deployment", deployment("b"), author));
    await differs(() => store.put(region, "deployment", deployment("a", { replicas: 2 }), author));
    // The same content with a newer version.
    await differs(() => store.put(region, "deployment", deployment("a"), author));
    await differs(() => store.stop(region, "deployment", "b", author));
    const before = await sum();
    await store.put(region, "deployment", deployment("a"), author);
    await store.put(region, "sentinel", sentinel("a"), author);
    await store.remove(region, "deployment", "b", author);
    assert.equal(await sum(), before);
    await store.remove(region, "deployment", "a", author);
    assert.equal(await sum(), 0n);
  });

  holds("a digest without news has no buckets, and names the newest version of its kind", async (open) => {
    const { store, region } = open;
    await store.put(region, "deployment", deployment("a"), author);
    const stopped = await store.stop(region, "deployment", "a", author);
    await store.put(region, "sentinel", sentinel("a"), author);
    const { sum, newestVersion } = await store.digest(region, "deployment");
    assert.equal(newestVersion, stopped);
    const again = await store.digest(region, "deployment", sum);
    assert.deepEqual([again.sum, again.buckets], [sum, undefined]);
    assert.equal((await store.digest(region, "deployment", sum + 1n)).buckets?.length, bucketCount);
    assert.equal((await store.digest(region, "policy")).newestVersion, 0n);
  });

  holds("an unknown region has no digest", async ({ store }) => {
    await assert.rejects(store.digest("nowhere.test", "deployment"), /not registered/);
    await assert.rejects(store.contents("nowhere.test", "deployment", [1]), /not registered/);
  });
}

/** What an agent has that read the stream from 0. */
async function streamedSum(store: Store, region: string, kind: KindName): Promise<bigint> {
  const { rows } = await store.changesSince(region, kind, 0n, 1_000);
  return sumOf(
    rows.flatMap((row) => {
      const { content, version } = stateOf(kind, row);
      return content === undefined ? [] : [{ id: content.id, version, hash: content.hash }];
    }),
  );
}
