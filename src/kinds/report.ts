// An agent's report on an object, as a control plane keeps it. The descriptor of each kind defines how its reports are
// read, stored, summarized and shown; a store needs nothing else.
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { ApplyOf } from "../engine/engine-kind.ts";
import type { ReportDeploymentStatusRequest_Update_Instance } from "../gen/ctrl/v1/deployment_pb.ts";
import type { ObjectViewSchema, ObjectView_Phase as Phase } from "../gen/krane/admin/v1/admin_pb.ts";

export type Instance = ReportDeploymentStatusRequest_Update_Instance;

/** Common to the kept reports of all kinds. */
export interface ObjectReport {
  readonly atMs: number;
  /** False once the agent reported that nothing is left in the cluster; absent if reports of the kind do not say. */
  readonly exists?: boolean;
  /** Its pods; absent if reports of the kind do not list them. */
  readonly instances?: readonly Instance[];
}

/** A report and the object that it is about. */
export interface AddressedReport<Report extends ObjectReport = ObjectReport> {
  /** Unique among the objects of the kind. */
  readonly name: string;
  /** Empty if the report does not contain it. */
  readonly id: string;
  readonly report: Report;
}

/** The columns of a report in a store. */
export interface StoredReport {
  readonly atMs: number;
  readonly exists: boolean;
  readonly instances: readonly Instance[];
  readonly body: Uint8Array;
}

export interface KindReports<
  State extends DescMessage,
  Wire extends DescMessage,
  Report extends ObjectReport,
> {
  /** Whether reports say when nothing is left of an object. */
  readonly sayGone: boolean;
  /** Whether reports list pods. */
  readonly listInstances: boolean;
  /** Undefined if the message is empty. */
  read(message: MessageShape<Wire>, atMs: number): AddressedReport<Report> | undefined;
  /** The part that has no column of its own in a store. */
  bodyOf(report: Report): Uint8Array;
  fromStored(stored: StoredReport): Report;
  /** A short text for history: counts and states without names or addresses, so that equal outcomes read the same. */
  outcomeOf(report: Report): string;
  /** The phase of an object whose spec the agent has settled. `report`: undefined before the first one. */
  phaseOf(message: ApplyOf<State>, report: Report | undefined): Phase;
  /** The field for this kind in the view of an object. */
  viewOf(report: Report): Exclude<MessageInitShape<typeof ObjectViewSchema>, { $typeName: string }>;
}
