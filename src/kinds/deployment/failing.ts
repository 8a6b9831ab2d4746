// Why pods of a deployment cannot run, for people: `2 of 3 pods: ImagePullBackOff: no such image`. Empty where
// they can. Pods that fail for the same reason are counted together.
//
// Pods that an earlier template made are told apart, and last: what is wrong with them was wrong with a description
// of before, and no change of the description mends them.
import { heldText } from "../../model/obstacle.ts";
import type { PodProjection, ReplicaSetProjection } from "./projections.ts";

// One deployment can fail in as many ways as it has pods; the two most common say enough.
const reasonsMax = 2;

type JudgedSet = Pick<ReplicaSetProjection, "replicas" | "templateHash" | "refusal" | "heldBy">;
type JudgedPod = Pick<PodProjection, "obstacle" | "standing" | "templateHash">;

interface Failure {
  readonly reason: string;
  readonly isOlder: boolean;
  count: number;
}

export function failingDeployment(
  { replicas, templateHash, refusal, heldBy }: JudgedSet,
  pods: Iterable<JudgedPod>,
): string {
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
    if (obstacle !== undefined) add(obstacle, pod.templateHash !== templateHash, 1);
    if (obstacle !== undefined || standing !== "omitted") there += 1;
  }
  // Refused pods are not there to be counted; what is missing is at least one, or nothing would be refused.
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

const older = "of an earlier description";
const onlyOlder = new RegExp(`^\\d+ of \\d+ pods? ${older}: `);

/** Whether a text made here is about pods of an earlier template alone: those of the newest one stand first. */
export function isAboutOlderPods(failing: string): boolean {
  return onlyOlder.test(failing);
}

function byWeight(a: Failure, b: Failure): number {
  return Number(a.isOlder) - Number(b.isOlder) || b.count - a.count || (a.reason < b.reason ? -1 : 1);
}
