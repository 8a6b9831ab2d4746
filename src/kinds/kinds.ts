// The kinds of desired state. To add one, create a folder beside this file and add a line here.
import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { ObjectKind } from "../gen/krane/admin/v1/admin_pb.ts";
import { deploymentKind } from "./deployment/kind.ts";
import type { Kind } from "./kind.ts";
import { policyKind } from "./policy/kind.ts";
import { routeKind } from "./route/kind.ts";
import { sentinelKind } from "./sentinel/kind.ts";

/** In the order in which objects are listed. */
export const kinds = {
  deployment: deploymentKind,
  sentinel: sentinelKind,
  policy: policyKind,
  route: routeKind,
} as const;

type Kinds = typeof kinds;

export type KindName = keyof Kinds;
/** Any kind, for code that does not need its specific types. */
export type AnyKind = Kind<KindName>;

// Mapped types, so that indexing with a generic kind name still gives one of these messages.
type ApplyMessages = { [K in KindName]: MessageShape<Kinds[K]["applySchema"]> };
type ApplyInits = { [K in KindName]: MessageInitShape<Kinds[K]["applySchema"]> };
type StateMessages = { [K in KindName]: MessageShape<Kinds[K]["stateSchema"]> };
type Reports = { [K in KindName]: Parameters<NonNullable<Kinds[K]["reports"]>["outcomeOf"]>[0] };

export type ApplyMessage<K extends KindName> = ApplyMessages[K];
export type ApplyInit<K extends KindName> = ApplyInits[K];
export type StateMessage<K extends KindName> = StateMessages[K];
/** The part of a report that a control plane keeps; never for kinds without reports. */
export type ReportOf<K extends KindName> = Reports[K];

/** A running controller of the kind. */
export type ControllerOf<K extends KindName> = ReturnType<Awaited<ReturnType<Kinds[K]["loadController"]>>>;

export const kindNames = Object.keys(kinds) as readonly KindName[];
export const allKinds: readonly AnyKind[] = Object.values(kinds);

export function kindOf(name: KindName): AnyKind {
  return kinds[name];
}

/** One value for each kind. */
export function perKind<T>(make: (kind: AnyKind) => T): Record<KindName, T> {
  return Object.fromEntries(allKinds.map((kind) => [kind.name, make(kind)])) as Record<KindName, T>;
}

/** For a sentence: "a deployment, a sentinel or a policy". */
export function oneOf(some: readonly AnyKind[]): string {
  const names = some.map(({ name }) => `a ${name}`);
  return [names.slice(0, -1).join(", "), ...names.slice(-1)].filter((text) => text !== "").join(" or ");
}

/** The kinds whose objects may belong to an object of this kind. */
export function kindsOwnedBy(name: KindName): readonly AnyKind[] {
  return allKinds.filter(({ owner }) => owner === name);
}

/** The kind for a value of the admin protocol; undefined if unknown. */
export function kindOfObject(objectKind: ObjectKind | undefined): Kind<KindName> | undefined {
  return allKinds.find((kind) => kind.objectKind === objectKind);
}

/** The kind that a controller manages; undefined if unknown. */
export function kindOfController(controller: string): AnyKind | undefined {
  return allKinds.find((kind) => kind.controller === controller);
}
