// Compares what the store has with the digest of the control plane, and names the objects that have to be requested: one
// call if nothing differs, and lists of the buckets that do (docs/adr/0015-digests.md).
//
// - An object is confirmed if its bucket has the same sum on both sides and the store's part of it names the object; or
//   if a list names it with the version and content hash that the store has.
// - An object in the cluster that the store's digest does not name is looked up in a list, and requested. Nothing is
//   absent because of a sum: absence takes a list without the object, and a `not_found` to the request for it.
// - A list comes with the sums that the digest has for it. If they are not those of the list, the digest is wrong: no sum
//   of it counts any more, everything is listed, and the lists win.
// - Now and then everything is listed, whatever the sums say, and the store's own sums are computed again.
// - If a call fails or its response makes no sense, nothing is concluded. The caller requests every object.
import { ControlPlaneError } from "../control-plane/error.ts";
import type { GetDesiredDigestResponse, ListDesiredContentsResponse } from "../gen/ctrl/v1/digest_pb.ts";
import { bucketCount, bucketOf, type DigestRow, decodeSums, encodeSums, sumOf } from "../model/digest.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { DesiredStore } from "./desired-store.ts";

export interface DigestSource {
  /** Undefined if the control plane has no digests. */
  digest(knownSum: Uint8Array, signal: AbortSignal): Promise<GetDesiredDigestResponse | undefined>;
  contents(buckets: readonly number[], signal: AbortSignal): Promise<ListDesiredContentsResponse | undefined>;
}

export interface DigestComparisonDeps<Spec> {
  readonly controller: string;
  readonly source: DigestSource;
  readonly store: Pick<DesiredStore<Spec>, "digest" | "digestId" | "digestRow" | "verifyDigest">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "digestsWrong">;
}

export interface ComparedObject {
  readonly key: string;
  readonly id: string;
}

export interface Comparison {
  /** The keys that both sides have alike. */
  readonly confirmed: ReadonlySet<string>;
  /** The keys that a list of the control plane does not name. */
  readonly absent: ReadonlySet<string>;
  /** The ids that the lists name, with their versions. */
  readonly listed: ReadonlyMap<string, bigint>;
}

/** About once an hour. */
const passesPerScan = 60;
const allBuckets: readonly number[] = [...Array(bucketCount).keys()];

export class DigestComparison<Spec> {
  private readonly deps: DigestComparisonDeps<Spec>;
  private passes = 0;

  constructor(deps: DigestComparisonDeps<Spec>) {
    this.deps = deps;
  }

  /** Undefined if the control plane has no digests; rejects if a call fails or its response makes no sense. */
  async compare(objects: readonly ComparedObject[], signal: AbortSignal): Promise<Comparison | undefined> {
    const { store } = this.deps;
    const isScan = this.passes % passesPerScan === passesPerScan - 1;
    if (isScan && !store.verifyDigest()) this.tellWrong("agent");
    const differing = await this.differing(isScan, signal);
    if (differing === undefined) return undefined;
    const wanted = new Set(differing);
    for (const { key, id } of objects) if (store.digestId(key) !== id) wanted.add(bucketOf(id));
    const lists = await this.list(isScan ? allBuckets : [...wanted], signal);
    if (lists === undefined) return undefined;
    this.passes += 1;
    return this.judge(objects, lists);
  }

  /** The buckets that differ. */
  private async differing(isScan: boolean, signal: AbortSignal): Promise<readonly number[] | undefined> {
    const { store, source } = this.deps;
    const answer = await source.digest(isScan ? new Uint8Array() : encodeSums([store.digest.whole]), signal);
    if (answer === undefined) return undefined;
    const [sum, ...others] = decodeSums(answer.sum) ?? [];
    if (sum === undefined || others.length > 0) throw senseless("a sum of another size");
    // The stream may have changed the store since the request.
    if (answer.buckets.byteLength === 0) return sum === store.digest.whole ? [] : allBuckets;
    const sums = decodeSums(answer.buckets);
    if (sums?.length !== bucketCount) throw senseless("another number of buckets");
    return allBuckets.filter((bucket) => sums[bucket] !== store.digest.get(bucket));
  }

  private async list(buckets: readonly number[], signal: AbortSignal): Promise<Lists | undefined> {
    const lists: Lists = new Map();
    const isRight = await this.listInto(lists, buckets, signal);
    if (isRight !== false) return isRight && lists;
    this.tellWrong("control plane");
    const rest = allBuckets.filter((bucket) => !lists.has(bucket));
    return (await this.listInto(lists, rest, signal)) === undefined ? undefined : lists;
  }

  /** Resolves with whether the sums of the digest are those of the lists; undefined if there are no lists. */
  private async listInto(
    lists: Lists,
    buckets: readonly number[],
    signal: AbortSignal,
  ): Promise<boolean | undefined> {
    let isRight = true;
    for (let left = buckets; left.length > 0; left = left.filter((bucket) => !lists.has(bucket))) {
      const answer = await this.deps.source.contents(left, signal);
      if (answer === undefined) return undefined;
      const isNews = answer.buckets.some(({ number }) => left.includes(number));
      if (!isNews) throw senseless("none of the requested buckets");
      for (const { number, sum, entries } of answer.buckets) {
        if (entries.some(({ id }) => bucketOf(id) !== number)) throw senseless("objects of other buckets");
        lists.set(number, new Map(entries.map((entry) => [entry.id, entry])));
        if (decodeSums(sum)?.[0] !== sumOf(entries)) isRight = false;
      }
    }
    return isRight;
  }

  private judge(objects: readonly ComparedObject[], lists: Lists): Comparison {
    const { store } = this.deps;
    const confirmed = new Set<string>();
    const absent = new Set<string>();
    for (const { key, id } of objects) {
      const list = lists.size === 0 ? undefined : lists.get(bucketOf(id));
      if (list !== undefined && !list.has(id)) absent.add(key);
      else if (
        store.digestId(key) === id &&
        (list === undefined || isSameRow(store.digestRow(key), list.get(id)))
      )
        confirmed.add(key);
    }
    const listed = new Map<string, bigint>();
    for (const list of lists.values()) for (const { id, version } of list.values()) listed.set(id, version);
    return { confirmed, absent, listed };
  }

  private tellWrong(side: "agent" | "control plane"): void {
    const { controller, log, metrics } = this.deps;
    metrics.digestsWrong.inc({ controller, side: side === "agent" ? "agent" : "control_plane" });
    log.error("a digest was wrong; comparing everything", {
      controller,
      reason: `the digest of the ${side}`,
    });
  }
}

function senseless(what: string): ControlPlaneError {
  return new ControlPlaneError("internal", `the control plane sent a digest with ${what}`);
}

/** By bucket and id. */
type Lists = Map<number, ReadonlyMap<string, DigestRow>>;

function isSameRow(one: DigestRow | undefined, other: DigestRow | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return other.version === one.version && Buffer.compare(one.hash, other.hash) === 0;
}
