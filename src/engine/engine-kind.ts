// What the engine needs to know about a kind of desired state: its name, its RPCs, and how to parse its messages. Each
// kind's descriptor implements it; the engine itself imports no kind.
import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { WireKind } from "../control-plane/connection.ts";
import type { ParsedMessage } from "../model/field-problem.ts";
import type { KeptOrder } from "../model/kept-order.ts";
import type { MessageRules } from "../model/message-fields.ts";

/** The message type of one case of a state; any message if the schema is not known. */
type CaseOf<State extends DescMessage, Case extends string> =
  MessageShape<State> extends { readonly state: infer States }
    ? Extract<States, { readonly case: Case }> extends { readonly value: infer Value extends Message }
      ? Value
      : never
    : Message;

export type ApplyOf<State extends DescMessage> = CaseOf<State, "apply">;
export type DeleteOf<State extends DescMessage> = CaseOf<State, "delete">;

/** Every spec can carry the order that it came from. */
export interface OrderedSpec {
  /** Absent on a spec from the stream. */
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
  /** The key of the object that a message concerns, `namespace/name`. */
  keyOf(message: ApplyOf<State> | DeleteOf<State>): string;
  /** Its id at the control plane; empty if the message has none. */
  idOf(message: ApplyOf<State>): string;
  parseApply(message: ApplyOf<State>, rules: MessageRules): ParsedMessage<Spec>;
  parseDelete(message: DeleteOf<State>, rules: MessageRules): ParsedMessage<unknown>;
  /** The field that can make an order too long to be recorded. */
  readonly longField: string;
}
