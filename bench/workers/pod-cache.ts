// Fills a cache of pods through a reflector and reports the memory of the process.
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { projectPod } from "../../src/kinds/deployment/projections.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { ObjectCache } from "../../src/kube/object-cache.ts";
import { Reflector } from "../../src/kube/reflector.ts";
import { pods } from "../../src/kube/resources.ts";
import { finish, takeTask } from "./parent.ts";
import { peakResidentMb, reachableHeapBytes, residentMb } from "./resources.ts";

export interface PodCacheTask {
  readonly url: string;
  /** "projection" is what krane keeps; "whole" is what a cache without projections would. */
  readonly keeps: "projection" | "whole";
}

export interface PodCacheResult {
  readonly cached: number;
  readonly residentMb: number;
  readonly peakMb: number;
  readonly heapBytesPerPod: number;
}

/** The only reference, so that it can be released. */
const held: { size: number }[] = [];

async function cachePods({
  url,
  keeps,
}: PodCacheTask): Promise<Pick<PodCacheResult, "residentMb" | "peakMb">> {
  const clock = createSystemClock();
  const endpoint = { server: url, credentials: fixedCredential({}) };
  const transport = createHttpTransport({ endpoint, connections: 8 }, { clock });
  const deps = { api: createKubeApi(transport), clock, random: createSystemRandom() };
  const stop = new AbortController();
  const reflect = async <P>(cache: ObjectCache<Pod, P, "owner">) => {
    const running = new Reflector({ kind: pods, cache }, deps).run(stop.signal);
    await cache.whenSynced(AbortSignal.timeout(120_000));
    return { cache, running };
  };
  // The indexes are those of the controller that watches pods.
  const { cache, running } =
    keeps === "projection"
      ? await reflect(new ObjectCache({ project: projectPod, indexes: { owner: (pod) => pod.ownerUid } }))
      : await reflect<Pod>(
          new ObjectCache({
            project: (pod) => pod,
            indexes: { owner: (pod) => pod.metadata?.ownerReferences?.[0]?.uid },
          }),
        );
  held.push(cache);
  const measured = { residentMb: residentMb(), peakMb: peakResidentMb() };
  stop.abort();
  await running;
  await transport.close();
  return measured;
}

const measured = await cachePods(takeTask<PodCacheTask>());
const cached = held[0]?.size ?? 0;
// The memory freed by releasing it is what the cache holds, without anything that the process
// would hold anyway, such as compiled code.
const withCache = reachableHeapBytes();
held.length = 0;
const withoutCache = reachableHeapBytes();
const result: PodCacheResult = {
  cached,
  ...measured,
  heapBytesPerPod: (withCache - withoutCache) / cached,
};
finish(result);
