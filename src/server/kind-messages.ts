// The messages of desired state, for every kind by its descriptor. What is kept of an object is its Apply message, here
// called its spec.
import { clone, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ApplyInit,
  type ApplyMessage,
  type KindName,
  kindOf,
  type StateMessage,
} from "../kinds/kinds.ts";

/** A copy of its own, so that nobody can change a row from outside. */
export function createSpec<K extends KindName>(
  kind: K,
  init: ApplyInit<K> | ApplyMessage<K>,
): ApplyMessage<K> {
  const { applySchema } = kindOf(kind);
  return ofKind(clone(applySchema, create(applySchema, init)));
}

/** Fields that this version does not know go through both ways. */
export function encodeSpec<K extends KindName>(kind: K, spec: ApplyMessage<K>): Uint8Array {
  return toBinary(kindOf(kind).applySchema, spec);
}

/** Throws on what is not a spec. */
export function decodeSpec<K extends KindName>(kind: K, bytes: Uint8Array): ApplyMessage<K> {
  return ofKind(fromBinary(kindOf(kind).applySchema, bytes));
}

export function applyState<K extends KindName>(
  kind: K,
  spec: ApplyMessage<K>,
  version: bigint,
): StateMessage<K> {
  return createState(kind, { state: { case: "apply", value: spec }, version });
}

export function deleteState<K extends KindName>(
  kind: K,
  spec: ApplyMessage<K>,
  version: bigint,
): StateMessage<K> {
  return createState(kind, { state: { case: "delete", value: kindOf(kind).deletionOf(spec) }, version });
}

/** Only moves the cursor of a client. */
export function bareState<K extends KindName>(kind: K, version: bigint): StateMessage<K> {
  return createState(kind, { version });
}

function createState<K extends KindName>(kind: K, init: StateInit): StateMessage<K> {
  return ofKind(create(kindOf(kind).stateSchema, init));
}

/** What the state messages of all kinds have in common. */
type StateInit = {
  readonly state?: { readonly case: "apply" | "delete"; readonly value: object };
  readonly version: bigint;
};

/** The schema is the kind's, and so is the message; the types cannot follow that. */
function ofKind<M>(message: unknown): M {
  return message as M;
}
