// Pods that an earlier description of their deployment made. krane replaces no pod, so a change in place reaches only
// pods that are made after it: what there was before runs on until somebody deletes it.
import type { ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import { isAboutOlderPods } from "../kinds/deployment/failing.ts";
import { viewOf } from "../kinds/object-view.ts";

/** The names of those that are known to the control plane. */
export function olderPods(object: ObjectView): readonly string[] {
  const pods = viewOf(object).listedPods(object);
  return pods.filter(({ outdated }) => outdated).map(({ k8sName }) => k8sName);
}

/** Whether pods of an earlier description are what keeps it from becoming ready, now and by itself for ever. */
export function isHeldByOlderPods(object: ObjectView): boolean {
  return olderPods(object).length > 0 || isAboutOlderPods(object.trouble?.failing ?? "");
}

export function olderPodsRemedy(object: Place): string {
  return `A new version is usually released under a new id. To have this one as described, delete the pods of before when it suits, and new ones are made: ${deletionOf(object)}`;
}

export interface Place {
  readonly namespace: string;
  /** Finds all pods of the object. */
  readonly selector: string;
  readonly olderPods: readonly string[];
}

// More names than anybody reads.
const namedMax = 10;
// A line to be typed into a shell holds nothing that means something there.
const podName = /^[a-z0-9][a-z0-9.-]*$/;

/** By name, so that no pod of the newest description goes with them; all of its pods where that cannot be. */
function deletionOf({ namespace, selector, olderPods: names }: Place): string {
  const canName = names.length > 0 && names.length <= namedMax && names.every((name) => podName.test(name));
  const which = canName ? names.join(" ") : `-l ${selector}`;
  return `kubectl -n ${namespace} delete pods ${which}`;
}
