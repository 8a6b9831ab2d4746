// The kubectl label selector for the pods of an object.
import type { ObjectKind } from "../gen/krane/admin/v1/admin_pb.ts";
import { kindOfObject, kinds } from "../kinds/kinds.ts";

/** A kind that only a newer control plane knows is treated as a deployment. */
export function podSelector(kind: ObjectKind | undefined, id: string): string {
  return `${(kindOfObject(kind) ?? kinds.deployment).idLabel}=${id}`;
}
