// How `krane get`, `krane describe`, `krane why` and --wait show an object of a kind. Pure functions of the control
// plane's response.
import type { ReportDeploymentStatusRequest_Update_Instance as Instance } from "../gen/ctrl/v1/deployment_pb.ts";
import type { ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";

export interface KindView {
  /** The columns of `krane get`, in their order. */
  readonly columns: readonly ColumnName[];
  podsOf(object: ObjectView): PodCounts;
  /** The pods listed by the last report; empty for a kind whose reports only count them. */
  listedPods(object: ObjectView): readonly ListedPod[];
  /** When the agent last reported on it; undefined if never. */
  reportedAtMs(object: ObjectView): bigint | undefined;
  /** The desired state in a few words; empty if the spec cannot be read. */
  wantedText(object: ObjectView): string;
  /** The last report in a few words. */
  liveText(object: ObjectView, pods: PodCounts): string;
  /** Where spec and report differ, besides the version and the number of pods. */
  differencesOf(object: ObjectView): readonly Difference[];
  /** Whether it was in the cluster at the last report. */
  stillExists(object: ObjectView): boolean;
  /** Whether its pods are being replaced with those of a newer spec. */
  isRollingOut(object: ObjectView): boolean;
}

export type ColumnName =
  | "id"
  | "name"
  | "ready"
  | "phase"
  | "image"
  | "deployment"
  | "leads"
  | "version"
  | "environment"
  | "restarts"
  | "age"
  | "reported"
  | "reason";

export type ListedPod = Pick<
  Instance,
  "k8sName" | "status" | "address" | "outdated" | "restarts" | "createdAtMs"
>;

export interface PodCounts {
  /** Undefined for a kind without pods, and if the spec cannot be read. */
  readonly wanted: number | undefined;
  /** Whether the numbers below were reported. */
  readonly isReported: boolean;
  readonly running: number;
  readonly failed: number;
  readonly pending: number;
  /** How many of them are from an older version. */
  readonly outdated: number;
  /** How many of the outdated ones are not running. */
  readonly outdatedDown: number;
  /** How many exceed the wanted number. */
  readonly surplus: number;
}

/** For a kind without pods, and for an object without a report. */
export const noPods: PodCounts = {
  wanted: undefined,
  isReported: false,
  running: 0,
  failed: 0,
  pending: 0,
  outdated: 0,
  outdatedDown: 0,
  surplus: 0,
};

export interface Difference {
  readonly field: string;
  readonly desired: string;
  readonly live: string;
}
