// Pods created from an older version of their deployment. krane does not replace running pods, so a change in place
// reaches only pods created after it; older ones keep running until somebody deletes them.
import type { ObjectKind, ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import { isAboutOlderPods } from "../kinds/deployment/failing.ts";
import { kindOfObject, kinds } from "../kinds/kinds.ts";
import { viewOf } from "../kinds/object-view.ts";

/** The names of those that the last status report lists. */
export function olderPods(object: ObjectView): readonly string[] {
  const pods = viewOf(object).listedPods(object);
  return pods.filter(({ outdated }) => outdated).map(({ k8sName }) => k8sName);
}

/** Whether the object cannot become ready until its older pods are deleted. */
export function isHeldByOlderPods(object: ObjectView): boolean {
  return olderPods(object).length > 0 || isAboutOlderPods(object.trouble?.failing ?? "");
}

export function olderPodsRemedy(object: Place): string {
  return `A new version usually gets a new id. To update this one in place, delete the old pods when convenient, and new ones are created: ${deletionOf(object)}`;
}

export interface Place {
  readonly namespace: string;
  /** Selects all pods of the object. */
  readonly selector: string;
  readonly olderPods: readonly string[];
}

// A longer command would be unreadable.
const namedMax = 10;
// The command is pasted into a shell, so it must hold no shell syntax.
const podName = /^[a-z0-9][a-z0-9.-]*$/;

/** Deletes by name, to spare pods of the newest version; falls back to all pods of the object. */
function deletionOf({ namespace, selector, olderPods: names }: Place): string {
  const canName = names.length > 0 && names.length <= namedMax && names.every((name) => podName.test(name));
  const which = canName ? names.join(" ") : `-l ${selector}`;
  return `kubectl -n ${namespace} delete pods ${which}`;
}

/** The kubectl label selector for the pods of an object. A kind that only a newer control plane knows counts as a deployment. */
export function podSelector(kind: ObjectKind | undefined, id: string): string {
  return `${(kindOfObject(kind) ?? kinds.deployment).idLabel}=${id}`;
}
