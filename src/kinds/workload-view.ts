// Texts and columns shared by the kinds that have pods.
import type { ColumnName, PodCounts } from "./kind-view.ts";

export const workloadColumns: readonly ColumnName[] = [
  "id",
  "name",
  "ready",
  "phase",
  "age",
  "image",
  "version",
  "environment",
  "reported",
  "reason",
];

interface WorkloadSpec {
  readonly replicas: number;
  readonly image: string;
  readonly cpuMillicores: bigint;
  readonly memoryMib: bigint;
}

export function workloadText({ replicas, image, cpuMillicores, memoryMib }: WorkloadSpec): string {
  return `${podsText(replicas)} of ${image}, each with ${cpuMillicores}m CPU and ${memoryMib}Mi memory`;
}

export function readyPodsText({ running, wanted = running }: PodCounts): string {
  return `${running} of ${podsText(wanted)} ready`;
}

export function podsText(count: number): string {
  return count === 1 ? "1 pod" : `${count} pods`;
}
