// Measures the latency of single changes, one after the other, with nothing else going on. Times are taken when this
// process, which has the control plane and independent watches, sees the change.
import { performance } from "node:perf_hooks";
import { labelKeys } from "../../src/model/labels.ts";
import { openRawConnection } from "../workers/raw-applier.ts";
import { type BenchRegion, regionName } from "./bench-region.ts";
import { keyOf, rawReplicaSet, type SampleSet, sampleDeployment } from "./sample-set.ts";

const limitMs = 60_000;

export interface ChangeLatencies {
  readonly agentMs: readonly number[];
  readonly rawMs: readonly number[];
}

/** A new image, from the order at the control plane until a watch shows it; raw: from the bare apply. */
export async function measureChanges(
  region: BenchRegion,
  sets: { readonly agent: SampleSet; readonly raw: SampleSet },
  indexes: readonly number[],
): Promise<ChangeLatencies> {
  const raw = openConnection(region);
  const agentMs: number[] = [];
  const rawMs: number[] = [];
  for (const index of indexes) {
    agentMs.push(await measureChange(region, sets.agent, index));
    const other = sampleDeployment(sets.raw, index, { tag: "2" });
    rawMs.push(await timeUntilNewer(region, keyOf(other), () => raw.patch(rawReplicaSet(other))));
  }
  raw.close();
  return { agentMs, rawMs };
}

/** A new image of one deployment, through the agent. */
export function measureChange(region: BenchRegion, set: SampleSet, index: number): Promise<number> {
  const wanted = sampleDeployment(set, index, { tag: "2" });
  return timeUntilNewer(region, keyOf(wanted), () => region.admin.setDeployment(regionName, wanted));
}

async function timeUntilNewer(
  { replicaSets, signal }: BenchRegion,
  key: string,
  change: () => Promise<unknown>,
): Promise<number> {
  const before = replicaSets.current(key)?.generation ?? 0;
  const begun = performance.now();
  const [at] = await Promise.all([
    replicaSets.seen.until(`a change of ${key}`, (one) => one.key === key && one.generation > before, {
      limitMs,
      signal,
    }),
    change(),
  ]);
  return at - begun;
}

/** Alternates between a label and the image, from sending the edit until a watch shows it undone. */
export async function measureRepairs(
  region: BenchRegion,
  set: SampleSet,
  indexes: readonly number[],
): Promise<readonly number[]> {
  const { replicaSets, signal } = region;
  const raw = openConnection(region);
  const times: number[] = [];
  for (const index of indexes) {
    const key = keyOf(sampleDeployment(set, index));
    const [namespace, name] = key.split("/");
    const before = replicaSets.current(key);
    const label = before?.labels[labelKeys.projectId];
    let edited = false;
    const isUndone = index % 2 === 0 ? labelUndone : imageUndone;
    function labelUndone(live: string | undefined): boolean {
      edited ||= live === "edited";
      return edited && live === label;
    }
    // The edit makes a new generation, and so does the repair.
    function imageUndone(_: string | undefined, generation: number): boolean {
      return generation >= (before?.generation ?? 0) + 2;
    }
    const begun = performance.now();
    const [at] = await Promise.all([
      replicaSets.seen.until(
        `the edit of ${key} is undone`,
        (one) => one.key === key && isUndone(one.labels[labelKeys.projectId], one.generation),
        { limitMs, signal },
      ),
      raw.patch({
        path: `/apis/apps/v1/namespaces/${namespace}/replicasets/${name}?fieldManager=kubectl-edit`,
        body: JSON.stringify(index % 2 === 0 ? labelEdit : imageEdit),
        contentType: "application/strategic-merge-patch+json",
      }),
    ]);
    times.push(at - begun);
  }
  raw.close();
  return times;
}

const labelEdit = { metadata: { labels: { [labelKeys.projectId]: "edited" } } };
const imageEdit = {
  spec: { template: { spec: { containers: [{ name: "deployment", image: "registry.example/edited:1" }] } } },
};

/** A first pod, from the watch that shows it Ready until the control plane has it as running. */
export async function measureReadiness(
  region: BenchRegion,
  set: SampleSet,
  indexes: readonly number[],
): Promise<readonly number[]> {
  const { admin, pods, calls, signal } = region;
  const times: number[] = [];
  for (const index of indexes) {
    const { k8sName, deploymentId } = sampleDeployment(set, index);
    const wait = { limitMs, signal };
    const [readyAt, reportedAt] = await Promise.all([
      pods.seen.until(
        `a pod of ${k8sName} is Ready`,
        (pod) => pod.ready && pod.labels[labelKeys.deploymentId] === deploymentId,
        wait,
      ),
      calls.until(
        `${k8sName} is reported as running`,
        (call) => call.kind === "report" && call.k8sName === k8sName && call.running === 1,
        wait,
      ),
      admin.scale(regionName, deploymentId, 1),
    ]);
    // The agent's watch may be ahead of this one, by more than the whole report took.
    times.push(Math.max(reportedAt - readyAt, 0));
  }
  return times;
}

function openConnection({ cluster: { serverUrl: url, ca, adminToken: token } }: BenchRegion) {
  return openRawConnection({ url, ca, token, connections: 1 });
}
