// The descriptor of a kind of desired state: its names, messages, RPCs and controller. Each kind is defined in one
// place; all other code reads its descriptor.
//
// A descriptor is small and has no side effects, because the CLI loads it for `--help`. Code that runs in an agent is
// loaded on demand.
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import type { ControllerDeps, ControllerOptions } from "../engine/controller-options.ts";
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
  /** The singular, as shown to users and in the store. */
  readonly name: Name;
  readonly plural: string;
  /** Short forms that users may type. */
  readonly aliases: readonly string[];
  /** Its value in the admin protocol. */
  readonly objectKind: ObjectKind;
  readonly applySchema: GenMessage<ApplyOf<State>>;
  /** The namespace of all its objects, if krane creates one for the kind. */
  readonly ownNamespace?: string;
  /** The namespace that its objects are in. */
  namespaceOf(message: ApplyOf<State> | DeleteOf<State>): string;
  /** Unique among the objects of the kind within a region. */
  uniqueNameOf(message: ApplyOf<State>): string;
  /** The message that deletes the object. */
  deletionOf(message: ApplyOf<State>): MessageInitShape<GenMessage<DeleteOf<State>>>;
  /** The kind that its objects may belong to: they are deleted with their owner. */
  readonly owner?: string;
  /** How a control plane handles its reports; absent for kinds without reports. */
  readonly reports?: KindReports<State, Report, Kept>;
  /** For kinds whose messages carry a tenant's encrypted variables. */
  readonly secrets?: KindSecrets<State>;
  /** Whether it has pods: then its message has the field `replicas`, and it needs the registry credentials. */
  readonly makesPods: boolean;
  /** The Kubernetes kind of the object that has its name, as kubectl accepts it. */
  readonly kubectlKind: string;
  /** The label with its id on its objects. */
  readonly idLabel: string;
  /** The permissions that only this kind needs; those that several kinds need are in src/agent/cluster-calls.ts. */
  readonly clusterCalls: readonly ClusterCall[];
  /** How its objects are shown to users. */
  readonly view: KindView;
  /** The documents that describe its objects; loaded by commands that read or write them. */
  loadDocument(): Promise<KindDocument<Name, ApplyOf<State>, Spec>>;
  loadController(): Promise<CreateController<State, Seen, Spec>>;
}

export interface KindSecrets<State extends DescMessage> {
  /** The JSON of ctrl.v1.SecretsConfig; empty without variables. */
  blobOf(message: ApplyOf<State>): Uint8Array;
  /** The message with another blob. */
  withBlob(message: ApplyOf<State>, blob: Uint8Array): ApplyOf<State>;
  /** The sorted names of the variables in a blob; empty if the blob is invalid. */
  namesIn(blob: Uint8Array): string[];
  /** Reports the problems of a blob under its field in the message. */
  check(blob: Uint8Array, refuse: Refuse): void;
}

/** Creates a controller without starting it. */
export type CreateController<State extends DescMessage, Seen, Spec> = (
  options: KindControllerOptions,
  deps: ControllerDeps,
) => KindController<State, Seen, Spec>;

export type KindControllerOptions = ControllerOptions & KindSettings;
