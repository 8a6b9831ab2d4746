// The pods of an object, grouped by zone. Pure.
import {
  type ReportDeploymentStatusRequest_Update_Instance as Pod,
  ReportDeploymentStatusRequest_Update_Instance_Status as PodStatus,
} from "../../gen/ctrl/v1/deployment_pb.ts";

export interface Zone {
  /** Empty for pods whose zone is not known. */
  readonly name: string;
  readonly pods: readonly Pod[];
  readonly running: number;
}

/** By name, the unknown one last; in each, pods that do not run first. */
export function zonesOf(pods: readonly Pod[]): readonly Zone[] {
  const byZone = new Map<string, Pod[]>();
  for (const pod of pods) byZone.set(pod.zone, [...(byZone.get(pod.zone) ?? []), pod]);
  return [...byZone]
    .map(([name, its]) => ({
      name,
      pods: its.toSorted(
        (a, b) => Number(isRunning(a)) - Number(isRunning(b)) || compare(a.k8sName, b.k8sName),
      ),
      running: its.filter(isRunning).length,
    }))
    .toSorted((a, b) => Number(a.name === "") - Number(b.name === "") || compare(a.name, b.name));
}

function isRunning({ status }: Pod): boolean {
  return status === PodStatus.RUNNING;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
