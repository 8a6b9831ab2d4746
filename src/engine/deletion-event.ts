// Says on the object itself why krane does not delete it, where whoever describes it in the cluster reads it.
import type { Event } from "kubernetes-types/core/v1.js";
import type { ObjectRef, ResourceKind } from "../kube/types.ts";

export interface EventSubject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  readonly uid: string;
}

/** One per object and life: its name is fixed, so that saying it again does not fill the cluster. */
export function deletionBlockedEvent(
  { kind, ref, uid }: EventSubject,
  reason: string,
  wallMs: number,
): Event {
  const { name, namespace = "default" } = ref;
  // biome-ignore lint/style/noRestrictedGlobals: it formats the time that the clock gave, and reads none itself.
  const timestamp = new Date(wallMs).toISOString().replace(/\.\d+Z$/, "Z");
  return {
    metadata: { name: `${name}.deletion-blocked-${uid.slice(0, 8)}`, namespace },
    involvedObject: {
      apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`,
      kind: kind.kind,
      name,
      namespace,
      uid,
    },
    type: "Warning",
    reason: "DeletionBlocked",
    message: `The control plane does not know this object. It is kept: ${reason}.`,
    source: { component: "krane" },
    reportingComponent: "krane",
    reportingInstance: "krane",
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
  };
}
