// The actions for objects of any kind, or of any kind with pods.
import { type KindName, kindOf } from "../kinds/kinds.ts";
import { killOnePod, toggleImageCrash } from "./cluster-faults.ts";
import type { ActionRegion, KindActions } from "./kind-actions.ts";
import type { WantedObject } from "./wanted-objects.ts";

export function sharedActions(kind: KindName): KindActions<KindName> {
  if (!kindOf(kind).makesPods) return { orderDeletion };
  return {
    orderDeletion,
    scaleUp: (region, object) => scale(region, object, 1),
    scaleDown: (region, object) => scale(region, object, -1),
    killPod: (region, object, signal) => killOnePod(region, podsOf(object), signal),
    toggleCrash: (region, { spec }, signal) =>
      toggleImageCrash(region, "image" in spec ? spec.image : "", signal),
  };
}

async function scale({ admin }: ActionRegion, { spec, view }: WantedObject, by: number): Promise<string> {
  const replicas = Math.max(0, ("replicas" in spec ? spec.replicas : 0) + by);
  const { version } = await admin.scaleObject({ ...refOf(view), replicas });
  return `scaled ${spec.k8sName} to ${replicas} (v${version})`;
}

async function orderDeletion({ admin }: ActionRegion, { spec, view }: WantedObject): Promise<string> {
  const { version } = await admin.deleteObject(refOf(view));
  return `requested the deletion of ${spec.k8sName} (v${version})`;
}

function refOf({ ref }: WantedObject["view"]) {
  return ref === undefined ? {} : { ref };
}

function podsOf({ kind, id, spec: { k8sName: name }, view: { namespace } }: WantedObject) {
  return { namespace, name, labelSelector: `${kindOf(kind).idLabel}=${id}` };
}
