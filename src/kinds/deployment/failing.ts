// Describes why pods of a deployment cannot run: `2 of 3 pods: ImagePullBackOff: no such image`, or an empty string if
// they can. Pods that fail for the same reason are counted together.
//
// Pods from an older template are counted separately and come last: the fault was in an older version of the spec, so
// changing the spec does not repair them.
import { heldText } from "../../model/obstacle.ts";
import { isOfOlderTemplate, type PodProjection, type ReplicaSetProjection } from "./projections.ts";

// Each pod can fail in its own way; the two most common reasons are enough.
const reasonsMax = 2;

type JudgedSet = Pick<
  ReplicaSetProjection,
  "replicas" | "templateHash" | "essence" | "image" | "refusal" | "heldBy"
>;
type JudgedPod = Pick<PodProjection, "obstacle" | "standing" | "templateHash" | "essence" | "laterImage">;

interface Failure {
  readonly reason: string;
  readonly isOlder: boolean;
  count: number;
}

export function failingDeployment(replicaSet: JudgedSet, pods: Iterable<JudgedPod>): string {
  const { replicas, refusal, heldBy } = replicaSet;
  if (heldBy !== undefined) return heldText("ReplicaSet", heldBy);
  const failures = new Map<string, Failure>();
  const add = (reason: string, isOlder: boolean, by: number) => {
    const key = `${isOlder} ${reason}`;
    const failure = failures.get(key) ?? { reason, isOlder, count: 0 };
    failure.count += by;
    failures.set(key, failure);
  };
  let there = 0;
  for (const pod of pods) {
    const { obstacle, standing } = pod;
    if (obstacle !== undefined) add(obstacle, isOfOlderTemplate(pod, replicaSet), 1);
    if (obstacle !== undefined || standing !== "omitted") there += 1;
  }
  // Refused pods do not exist, so they are counted as missing replicas: at least one, or nothing was refused.
  if (refusal !== undefined) add(refusal, false, Math.max(1, replicas - there));
  const total = Math.max(replicas, there);
  return [...failures.values()]
    .sort(byWeight)
    .slice(0, reasonsMax)
    .map(
      ({ reason, isOlder, count }) =>
        `${count} of ${total} ${total === 1 ? "pod" : "pods"}${isOlder ? ` ${older}` : ""}: ${reason}`,
    )
    .join("; ");
}

const older = "from an older version";
// An older agent reports "of an earlier description".
const onlyOlder = new RegExp(`^\\d+ of \\d+ pods? (?:${older}|of an earlier description): `);

/** Whether a text from above is only about pods from an older template: pods of the newest one would come first. */
export function isAboutOlderPods(failing: string): boolean {
  return onlyOlder.test(failing);
}

function byWeight(a: Failure, b: Failure): number {
  return Number(a.isOlder) - Number(b.isOlder) || b.count - a.count || (a.reason < b.reason ? -1 : 1);
}
