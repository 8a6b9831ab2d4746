// Orders that came by an RPC instead of the stream: parses them, and lets their callers wait for the outcome. An order is
// recorded as a message of the stream with the version that the order replaced, so that a replay of that version does
// not undo the order.
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { onAbort } from "../concurrency/abort-listener.ts";
import { type KeptOrder, readinessIdMax } from "../model/kept-order.ts";
import type { MessageRules } from "../model/message-fields.ts";
import { type DesiredMessage, readApply, readState } from "./desired-message.ts";
import type { ApplyOf, EngineKind, OrderedSpec } from "./engine-kind.ts";
import type { OutcomeRecord } from "./object-status.ts";
import type { OrderRecord } from "./order-records.ts";

export interface Order<Apply> {
  readonly message: Apply;
  /** A token of the caller. */
  readonly readinessId?: string | undefined;
}

export interface ReadOrder<Spec> {
  readonly message: DesiredMessage<Spec>;
  /** What to record, until it gets its number; undefined for a deletion or an invalid order. */
  readonly record?: Omit<OrderRecord, "number">;
}

/** A ConfigMap has room for 1 MiB. SchedulerService accepts less than this in one request. */
const orderBytesMax = 768 * 1024;

/** Parses an order. `versionOf` returns the known version of a key. */
export function readOrder<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  { message, readinessId }: Order<ApplyOf<State>>,
  versionOf: (key: string) => bigint,
  rules: MessageRules,
): ReadOrder<Spec> {
  const read = readApply(kind, message, 0n, rules);
  if (read.want.kind !== "apply") return { message: read };
  if (readinessId !== undefined && readinessId.length > readinessIdMax)
    return invalidOrder(read, "readiness_id", `must have at most ${readinessIdMax} characters`);
  const { key, id = "" } = read;
  const version = versionOf(key);
  const init = { version, state: { case: "apply", value: message } } as unknown as MessageInitShape<State>;
  const state = toBinary(kind.stateSchema, create(kind.stateSchema, init));
  if (state.length > orderBytesMax) return invalidOrder(read, kind.longField, "is too long to be stored");
  return {
    message: { ...read, version, want: { kind: "apply", spec: withOrder(read.want.spec, readinessId) } },
    record: { key, id, state, ...(readinessId !== undefined && { readinessId }) },
  };
}

/** Reads a record; undefined if it is not one of an object of this kind. */
export function restoreOrder<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  { key, state, readinessId }: OrderRecord,
  rules: MessageRules,
): DesiredMessage<Spec> | undefined {
  const parsed = parseState(kind, state);
  const read = parsed && readState(kind, parsed, rules);
  if (read?.kind !== "message" || read.message.key !== key) return undefined;
  const { message } = read;
  if (message.want.kind !== "apply") return message;
  return { ...message, want: { kind: "apply", spec: withOrder(message.want.spec, readinessId) } };
}

function parseState<State extends DescMessage>({ stateSchema }: { stateSchema: State }, bytes: Uint8Array) {
  try {
    return fromBinary(stateSchema, bytes);
  } catch {
    return undefined;
  }
}

function withOrder<Spec extends OrderedSpec>(spec: Spec, readinessId: string | undefined): Spec {
  const kept: KeptOrder = readinessId === undefined ? {} : { readinessId };
  return { ...spec, kept };
}

function invalidOrder<Spec>(message: DesiredMessage<Spec>, path: string, reason: string): ReadOrder<Spec> {
  return { message: { ...message, want: { kind: "invalid", problems: [{ path, message: reason }] } } };
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
