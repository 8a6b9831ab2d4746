// Ownership between a controller's object and what it makes.

import { apiVersionOf } from "../resource.ts";
import type { KubeObject, OwnerReference, ResourceKind } from "../types.ts";

export function controllerOwner({ metadata }: KubeObject): OwnerReference | undefined {
  return (metadata?.ownerReferences ?? []).find(({ controller }) => controller === true);
}

export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  return controllerOwner(object)?.uid === owner.metadata?.uid;
}

export function controllerReference(
  kind: ResourceKind,
  owner: KubeObject,
): OwnerReference & {
  controller: true;
  blockOwnerDeletion: true;
} {
  return {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    name: owner.metadata?.name ?? "",
    uid: owner.metadata?.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}
