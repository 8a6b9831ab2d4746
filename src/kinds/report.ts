// What an agent reports on an object, as a control plane keeps it. Each kind says in its descriptor how its reports are
// read, stored, told in words and shown; a store need not know more than this.
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { ApplyOf } from "../engine/engine-kind.ts";
import type { ReportDeploymentStatusRequest_Update_Instance } from "../gen/ctrl/v1/deployment_pb.ts";
import type { ObjectViewSchema, ObjectView_Phase as Phase } from "../gen/krane/admin/v1/admin_pb.ts";

export type Instance = ReportDeploymentStatusRequest_Update_Instance;

/** What the kept reports of all kinds have in common. */
export interface ObjectReport {
  readonly atMs: number;
  /** False once the agent has said that nothing is left in the cluster; absent where the kind's reports do not say. */
  readonly exists?: boolean;
  /** Its pods; absent where the kind's reports do not list them. */
  readonly instances?: readonly Instance[];
}

/** A report with the object that it is on. */
export interface AddressedReport<Report extends ObjectReport = ObjectReport> {
  /** What no other object of the kind has. */
  readonly name: string;
  /** Empty where the report does not say it. */
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
  /** Whether its reports say when nothing is left of an object. */
  readonly sayGone: boolean;
  /** Whether its reports list pods. */
  readonly listInstances: boolean;
  /** Undefined where the message says nothing. */
  read(message: MessageShape<Wire>, atMs: number): AddressedReport<Report> | undefined;
  /** What has no column of its own in a store. */
  bodyOf(report: Report): Uint8Array;
  fromStored(stored: StoredReport): Report;
  /** In a few words for history: counts and states, never names or addresses, so that equal news reads the same. */
  outcomeOf(report: Report): string;
  /** How far the object has come, once the agent has settled what is wanted; undefined before the first report. */
  phaseOf(message: ApplyOf<State>, report: Report | undefined): Phase;
  /** Its field of an object's view. */
  viewOf(report: Report): Exclude<MessageInitShape<typeof ObjectViewSchema>, { $typeName: string }>;
}
