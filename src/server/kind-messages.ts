// Encodes and decodes the messages of desired state for every kind, by its descriptor. The store keeps the Apply message
// of an object, here called its spec.
import { clone, create, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ApplyInit,
  type ApplyMessage,
  type KindName,
  kindOf,
  type StateMessage,
} from "../kinds/kinds.ts";

const identityLengthMax = 300;

/** A copy, so that callers cannot change a stored row. */
export function createSpec<K extends KindName>(
  kind: K,
  init: ApplyInit<K> | ApplyMessage<K>,
): ApplyMessage<K> {
  const { applySchema } = kindOf(kind);
  return ofKind(clone(applySchema, create(applySchema, init)));
}

/** Preserves fields that this version does not know, in both directions. */
export function encodeSpec<K extends KindName>(kind: K, spec: ApplyMessage<K>): Uint8Array {
  return toBinary(kindOf(kind).applySchema, spec);
}

/** Throws when the bytes are not a spec. */
export function decodeSpec<K extends KindName>(kind: K, bytes: Uint8Array): ApplyMessage<K> {
  return ofKind(fromBinary(kindOf(kind).applySchema, bytes));
}

export function applyState<K extends KindName>(
  kind: K,
  spec: ApplyMessage<K>,
  version: bigint,
  content?: StateContent,
): StateMessage<K> {
  return createState(kind, { state: { case: "apply", value: spec }, version, ...(content && { content }) });
}

export function deleteState<K extends KindName>(
  kind: K,
  spec: ApplyMessage<K>,
  version: bigint,
): StateMessage<K> {
  return createState(kind, { state: { case: "delete", value: kindOf(kind).deletionOf(spec) }, version });
}

/** What an agent gets instead of a spec that it cannot receive. */
export function tooLargeState<K extends KindName>(
  kind: K,
  spec: ApplyMessage<K>,
  version: bigint,
  size: { readonly bytes: number; readonly bytesMax: number },
  content?: StateContent,
): StateMessage<K> {
  const { applySchema, rpcs } = kindOf(kind);
  const fields = spec as unknown as Readonly<Record<string, unknown>>;
  const identity = ["k8sNamespace", "k8sName", rpcs.idField].flatMap((name) => {
    const value = fields[name];
    // A longer one is invalid anyway, and could make this message too large as well.
    return typeof value === "string" ? [[name, value.slice(0, identityLengthMax)]] : [];
  });
  return createState(kind, {
    version,
    tooLarge: {
      spec: create<DescMessage>(applySchema, Object.fromEntries(identity)),
      bytes: BigInt(size.bytes),
      bytesMax: BigInt(size.bytesMax),
    },
    ...(content && { content }),
  });
}

/** Only moves a client's cursor. */
export function bareState<K extends KindName>(kind: K, version: bigint): StateMessage<K> {
  return createState(kind, { version });
}

function createState<K extends KindName>(kind: K, init: StateInit): StateMessage<K> {
  return ofKind(create(kindOf(kind).stateSchema, init));
}

/** The fields common to the state messages of all kinds. */
type StateInit = {
  readonly state?: { readonly case: "apply" | "delete"; readonly value: object };
  readonly tooLarge?: { readonly spec: object; readonly bytes: bigint; readonly bytesMax: bigint };
  readonly version: bigint;
  readonly content?: StateContent;
};

/** Identifies the content of a wanted object, for digests. */
export interface StateContent {
  readonly id: string;
  readonly hash: Uint8Array;
}

/** Schema and message are of the same kind, which the types cannot express. */
function ofKind<M>(message: unknown): M {
  return message as M;
}
