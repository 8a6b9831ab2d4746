// The kinds of desired state. A new kind is a folder beside this file, and a line here.
import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { ObjectKind } from "../gen/krane/admin/v1/admin_pb.ts";
import { deploymentKind } from "./deployment/kind.ts";
import type { Kind } from "./kind.ts";
import { policyKind } from "./policy/kind.ts";
import { sentinelKind } from "./sentinel/kind.ts";

/** In the order in which objects are listed. */
export const kinds = {
  deployment: deploymentKind,
  sentinel: sentinelKind,
  policy: policyKind,
} as const;

type Kinds = typeof kinds;

export type KindName = keyof Kinds;
export type ApplyMessage<K extends KindName> = MessageShape<Kinds[K]["applySchema"]>;
export type ApplyInit<K extends KindName> = MessageInitShape<Kinds[K]["applySchema"]>;
export type StateMessage<K extends KindName> = MessageShape<Kinds[K]["stateSchema"]>;

/** A running controller of the kind. */
export type ControllerOf<K extends KindName> = ReturnType<Awaited<ReturnType<Kinds[K]["loadController"]>>>;

export const kindNames = Object.keys(kinds) as readonly KindName[];
export const allKinds: readonly Kind<KindName>[] = Object.values(kinds);

/** The kind for a value of the admin protocol; undefined if unknown. */
export function kindOfObject(objectKind: ObjectKind | undefined): Kind<KindName> | undefined {
  return allKinds.find((kind) => kind.objectKind === objectKind);
}

/** The kind that a controller manages; undefined if unknown. */
export function kindOfController(controller: string): Kind<KindName> | undefined {
  return allKinds.find((kind) => kind.controller === controller);
}
