// Orders that came by an RPC instead of the stream: stores them in an annotation of the object they concern, so that
// they survive a restart. What is stored is a message of the stream with the version that the order replaced, so that
// a replay of that version does not undo the order.
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { onAbort } from "../concurrency/abort-listener.ts";
import {
  type KeptOrder,
  type OrderMark,
  openOrder,
  orderTextMax,
  readinessIdMax,
  sealOrder,
} from "../model/kept-order.ts";
import type { MessageRules } from "../model/message-fields.ts";
import { type DesiredMessage, readApply, readState } from "./desired-message.ts";
import type { ApplyOf, EngineKind, OrderedSpec } from "./engine-kind.ts";
import type { OutcomeRecord } from "./object-status.ts";

export interface Order<Apply> {
  readonly message: Apply;
  /** A token of the caller, stored on the object. */
  readonly readinessId?: string | undefined;
}

/** A live object that may carry the order that created it. */
export interface OrderedObject {
  readonly namespace: string;
  readonly name: string;
  /** Undefined if the object carries no id. */
  readonly id: string | undefined;
  readonly ordered: OrderMark | undefined;
}

/** Parses an order. `versionOf` returns the known version of a key. */
export function readOrder<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  { message, readinessId }: Order<ApplyOf<State>>,
  versionOf: (key: string) => bigint,
  rules: MessageRules,
): DesiredMessage<Spec> {
  const read = readApply(kind, message, 0n, rules);
  if (read.want.kind !== "apply") return read;
  if (readinessId !== undefined && readinessId.length > readinessIdMax)
    return invalidOrder(read, "readiness_id", `must have at most ${readinessIdMax} characters`);
  const version = versionOf(read.key);
  const { spec } = read.want;
  const { longField, blob } = kind.orders;
  const value = blob === undefined ? message : blob.without(message);
  const init = { version, state: { case: "apply", value } } as unknown as MessageInitShape<State>;
  const bytes = toBinary(kind.stateSchema, create(kind.stateSchema, init));
  const text = sealOrder(bytes, blob === undefined ? "" : blob.of(spec));
  if (text.length > orderTextMax) return invalidOrder(read, longField, "is too long to be stored");
  return { ...read, version, want: { kind: "apply", spec: withOrder(spec, text, readinessId) } };
}

/** Reads the order from a live object; undefined if it carries none, or the order of another object. */
export function restoreOrder<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  { namespace, name, id, ordered }: OrderedObject,
  rules: MessageRules,
): DesiredMessage<Spec> | undefined {
  if (ordered?.text === undefined) return undefined;
  const { text, blob, readinessId } = ordered;
  const state = stateOf(kind, openOrder(text, blob), blob);
  const read = state && readState(kind, state, rules);
  if (read?.kind !== "message") return undefined;
  const { message } = read;
  if (message.key !== `${namespace}/${name}` || message.id !== id) return undefined;
  if (message.want.kind !== "apply") return message;
  return { ...message, want: { kind: "apply", spec: withOrder(message.want.spec, text, readinessId) } };
}

function stateOf<State extends DescMessage, Spec extends OrderedSpec>(
  { stateSchema, orders }: Pick<EngineKind<State, Spec>, "stateSchema" | "orders">,
  bytes: Uint8Array | undefined,
  blob: string,
) {
  try {
    const message = bytes && fromBinary(stateSchema, bytes);
    const applied = message as { state?: { case?: string; value?: ApplyOf<State> } } | undefined;
    if (applied?.state?.case === "apply" && applied.state.value !== undefined && orders.blob !== undefined)
      applied.state.value = orders.blob.with(applied.state.value, blob);
    return message;
  } catch {
    return undefined;
  }
}

function withOrder<Spec extends OrderedSpec>(
  spec: Spec,
  text: string,
  readinessId: string | undefined,
): Spec {
  const kept: KeptOrder = { text, ...(readinessId !== undefined && { readinessId }) };
  return { ...spec, kept };
}

function invalidOrder<Spec>(
  message: DesiredMessage<Spec>,
  path: string,
  reason: string,
): DesiredMessage<Spec> {
  return { ...message, want: { kind: "invalid", problems: [{ path, message: reason }] } };
}

interface Wait {
  /** The store's sequence number of the order. */
  readonly sequence: number;
  readonly resolve: (outcome: OutcomeRecord) => void;
}

/** Lets the caller of an order wait for its outcome. */
export class OrderWaits {
  private readonly waits = new Map<string, Set<Wait>>();

  wait(key: string, sequence: number, signal: AbortSignal): Promise<OutcomeRecord> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const wait: Wait = {
        sequence,
        resolve(outcome) {
          stopListening();
          resolve(outcome);
        },
      };
      const stopListening = onAbort(signal, () => {
        this.drop(key, wait);
        reject(signal.reason);
      });
      this.waits.set(key, (this.waits.get(key) ?? new Set()).add(wait));
    });
  }

  /** The key was reconciled with the entry of this sequence number. */
  settle(key: string, sequence: number, outcome: OutcomeRecord | undefined): void {
    if (outcome === undefined || outcome.outcome === "pending") return;
    for (const wait of this.waits.get(key) ?? []) {
      if (wait.sequence > sequence) continue;
      this.drop(key, wait);
      wait.resolve(outcome);
    }
  }

  private drop(key: string, wait: Wait): void {
    const waits = this.waits.get(key);
    waits?.delete(wait);
    if (waits?.size === 0) this.waits.delete(key);
  }
}
