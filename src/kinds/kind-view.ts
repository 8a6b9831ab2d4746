// What people are shown of an object, where it depends on the kind: `krane get`, `krane describe`, `krane why` and
// --wait read it. Pure, from what the control plane answers.
import type { ReportDeploymentStatusRequest_Update_Instance as Instance } from "../gen/ctrl/v1/deployment_pb.ts";
import type { ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";

export interface KindView {
  /** The columns of `krane get`, in their order. */
  readonly columns: readonly ColumnName[];
  podsOf(object: ObjectView): PodCounts;
  /** The pods that the last report lists; none for a kind whose reports only count them. */
  listedPods(object: ObjectView): readonly ListedPod[];
  /** When the agent last reported on it; undefined for never. */
  reportedAtMs(object: ObjectView): bigint | undefined;
  /** What is wanted, in a few words; empty where the spec cannot be read. */
  wantedText(object: ObjectView): string;
  /** What the last report says, in a few words. */
  liveText(object: ObjectView, pods: PodCounts): string;
  /** Where spec and report differ, besides the version and the number of pods. */
  differencesOf(object: ObjectView): readonly Difference[];
  /** Whether the last report says that it is in the cluster. */
  stillExists(object: ObjectView): boolean;
  /** Whether its pods are being replaced by those of a newer spec. */
  isRollingOut(object: ObjectView): boolean;
}

export type ColumnName =
  | "id"
  | "name"
  | "ready"
  | "phase"
  | "image"
  | "deployment"
  | "version"
  | "environment"
  | "reported"
  | "reason";

export type ListedPod = Pick<Instance, "k8sName" | "status" | "address" | "outdated">;

export interface PodCounts {
  /** Undefined for what has no pods, and where the description cannot be read. */
  readonly wanted: number | undefined;
  /** Whether the numbers below were reported. */
  readonly isReported: boolean;
  readonly running: number;
  readonly failed: number;
  readonly pending: number;
  /** Of them all, those that an earlier description made. */
  readonly outdated: number;
  /** Of these, those that do not run. */
  readonly outdatedDown: number;
  /** How many there are beyond those that are wanted. */
  readonly surplus: number;
}

/** Of a kind without pods, and of an object that nothing was reported about. */
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
