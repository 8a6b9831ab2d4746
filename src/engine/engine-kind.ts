// What the engine has to be told about a kind of desired state: its name, its RPCs, and how to read its messages.
// A kind's descriptor is one of these; the engine itself knows no kind.
import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { WireKind } from "../control-plane/connection.ts";
import type { ParsedMessage } from "../model/field-problem.ts";
import type { KeptOrder } from "../model/kept-order.ts";
import type { MessageRules } from "../model/message-fields.ts";

/** The message of one case of a state; any message where the schema is not known. */
type CaseOf<State extends DescMessage, Case extends string> =
  MessageShape<State> extends { readonly state: infer States }
    ? Extract<States, { readonly case: Case }> extends { readonly value: infer Value extends Message }
      ? Value
      : never
    : Message;

export type ApplyOf<State extends DescMessage> = CaseOf<State, "apply">;
export type DeleteOf<State extends DescMessage> = CaseOf<State, "delete">;

/** Every spec can carry the order that it came with. */
export interface OrderedSpec {
  /** Absent on what the stream brought. */
  readonly kept?: KeptOrder;
}

export interface EngineKind<
  State extends DescMessage = DescMessage,
  Spec extends OrderedSpec = OrderedSpec,
  Report extends DescMessage = DescMessage,
> extends WireKind<State, Report> {
  /** The name of its controller in logs, metrics and on the wire. */
  readonly controller: string;
  /** A version, and one of the cases `apply` and `delete`. */
  readonly stateSchema: State;
  /** The object in the cluster that a message is about, `namespace/name`. */
  keyOf(message: ApplyOf<State> | DeleteOf<State>): string;
  /** Its id at the control plane; empty where the message does not say it. */
  idOf(message: ApplyOf<State>): string;
  parseApply(message: ApplyOf<State>, rules: MessageRules): ParsedMessage<Spec>;
  parseDelete(message: DeleteOf<State>, rules: MessageRules): ParsedMessage<unknown>;
  /** How an order that came by a call is kept on the object. */
  readonly orders: KindOrders<State, Spec>;
}

export interface KindOrders<State extends DescMessage, Spec> {
  /** The one field that can make an order too long to be kept. */
  readonly longField: string;
  /** For kinds whose pods carry a part of the message: it is not kept twice. */
  readonly blob?: {
    of(spec: Spec): string;
    /** The message without the blob. */
    without(message: ApplyOf<State>): ApplyOf<State>;
    /** The message with the blob put back; base64. */
    with(message: ApplyOf<State>, blob: string): ApplyOf<State>;
  };
}
