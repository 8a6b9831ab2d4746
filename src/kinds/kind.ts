// The descriptor of a kind of desired state: its names, messages, RPCs and controller. Each kind is defined in one
// place; all other code reads its descriptor.
//
// A descriptor is pure and small, because the command line reads it for `--help`. Code that runs in an agent is loaded
// on demand.
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import type { ControllerDeps, ControllerOptions } from "../engine/controller.ts";
import type { ApplyOf, DeleteOf, EngineKind, OrderedSpec } from "../engine/engine-kind.ts";
import type { KindController } from "../engine/running-controller.ts";
import type { ObjectKind } from "../gen/krane/admin/v1/admin_pb.ts";
import type { Refuse } from "../model/field-problem.ts";
import type { ClusterCall } from "./cluster-call.ts";
import type { KindDocument } from "./kind-document.ts";
import type { KindSettings } from "./kind-settings.ts";
import type { KindView } from "./kind-view.ts";
import type { KindReports, ObjectReport } from "./report.ts";

export interface Kind<
  Name extends string = string,
  State extends DescMessage = DescMessage,
  Report extends DescMessage = DescMessage,
  Spec extends OrderedSpec = OrderedSpec,
  Seen = unknown,
  Kept extends ObjectReport = ObjectReport,
> extends EngineKind<State, Spec, Report> {
  /** The word for one of them, for people and in the store. */
  readonly name: Name;
  readonly plural: string;
  /** Short forms that people may type. */
  readonly aliases: readonly string[];
  /** The admin protocol's. */
  readonly objectKind: ObjectKind;
  readonly applySchema: GenMessage<ApplyOf<State>>;
  /** The one namespace of all its objects, where it has one that krane makes for it. */
  readonly ownNamespace?: string;
  /** The namespace that its objects are in. */
  namespaceOf(message: ApplyOf<State> | DeleteOf<State>): string;
  /** What no other object of the kind may have within a region. */
  uniqueNameOf(message: ApplyOf<State>): string;
  /** The order to delete what the message describes. */
  deletionOf(message: ApplyOf<State>): MessageInitShape<GenMessage<DeleteOf<State>>>;
  /** The kind that its objects may belong to: they are deleted with the object that they belong to. */
  readonly owner?: string;
  /** What a control plane makes of its reports; absent for kinds that nobody reports on. */
  readonly reports?: KindReports<State, Report, Kept>;
  /** For kinds whose messages carry a tenant's encrypted variables. */
  readonly secrets?: KindSecrets<State>;
  /** It makes pods: its message has the field `replicas`, and it needs the credentials of the registry. */
  readonly makesPods: boolean;
  /** The kind in Kubernetes that its name is looked up by, as kubectl takes it. */
  readonly kubectlKind: string;
  /** The label that its objects carry its id in. */
  readonly idLabel: string;
  /** The rights that an agent needs for it alone; what several kinds need is in src/agent/cluster-calls.ts. */
  readonly clusterCalls: readonly ClusterCall[];
  /** What people are shown of its objects. */
  readonly view: KindView;
  /** The documents that describe its objects; loaded by commands that read or write them. */
  loadDocument(): Promise<KindDocument<Name, ApplyOf<State>, Spec>>;
  loadController(): Promise<CreateController<State, Seen, Spec>>;
}

export interface KindSecrets<State extends DescMessage> {
  /** The JSON of ctrl.v1.SecretsConfig; empty where there are none. */
  blobOf(message: ApplyOf<State>): Uint8Array;
  /** The message with another blob. */
  withBlob(message: ApplyOf<State>, blob: Uint8Array): ApplyOf<State>;
  /** Of the variables in a blob, in order; none where it cannot be read. */
  namesIn(blob: Uint8Array): string[];
  /** Refuses what is wrong with a blob, by the field of the message that it is in. */
  check(blob: Uint8Array, refuse: Refuse): void;
}

/** Constructing one starts nothing. */
export type CreateController<State extends DescMessage, Seen, Spec> = (
  options: KindControllerOptions,
  deps: ControllerDeps,
) => KindController<State, Seen, Spec>;

export type KindControllerOptions = ControllerOptions & KindSettings;
