// Pods. Unscheduled ones vanish when deleted; scheduled ones get a deletion timestamp and
// stay until their kubelet confirms that the containers have ended.
import type { Pod, PodSpec } from "kubernetes-types/core/v1.js";
import { type Column, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { admitPod } from "./pod-admission.ts";
import { defaultPod } from "./pod-spec-defaults.ts";
import { checkPodSpec } from "./pod-spec-validation.ts";
import { readyText, restartsText, statusText } from "./pod-status-text.ts";
import { checkPodUpdate } from "./pod-updates.ts";
import { compareQuantities } from "./quantity-order.ts";

const columns: Column<Pod>[] = [
  nameColumn,
  {
    name: "Ready",
    type: "string",
    description: "The aggregate readiness state of this pod for accepting traffic.",
    cell: readyText,
  },
  {
    name: "Status",
    type: "string",
    description: "The aggregate status of the containers in this pod.",
    cell: statusText,
  },
  {
    name: "Restarts",
    type: "string",
    description:
      "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
    cell: restartsText,
  },
  ageColumn,
  {
    name: "IP",
    type: "string",
    priority: 1,
    description: "The address of the pod, once it has one.",
    cell: ({ status }) => status?.podIP ?? "<none>",
  },
  {
    name: "Node",
    type: "string",
    priority: 1,
    description: "The node that the pod is scheduled to.",
    cell: ({ spec }) => spec?.nodeName ?? "<none>",
  },
  {
    name: "Nominated Node",
    type: "string",
    priority: 1,
    description: "The node that the pod may preempt others on.",
    cell: ({ status }) => status?.nominatedNodeName ?? "<none>",
  },
  {
    name: "Readiness Gates",
    type: "string",
    priority: 1,
    description: "Conditions that must hold before the pod counts as ready.",
    cell: gatesText,
  },
];

export const pods = defineResource<Pod>({
  kind: { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true },
  singular: "pod",
  shortNames: ["po"],
  categories: ["all"],
  schema: "io.k8s.api.core.v1.Pod",
  statusSubresource: true,
  deleteAnswersObject: true,
  subresources: ["binding", "eviction"],
  generationPaths: [["spec"]],
  selectableFields: {
    "spec.nodeName": (pod) => pod.spec?.nodeName ?? "",
    "spec.restartPolicy": (pod) => pod.spec?.restartPolicy ?? "",
    "spec.schedulerName": (pod) => pod.spec?.schedulerName ?? "",
    "spec.serviceAccountName": (pod) => pod.spec?.serviceAccountName ?? "",
    "spec.hostNetwork": (pod) => String(pod.spec?.hostNetwork ?? false),
    "status.phase": (pod) => pod.status?.phase ?? "",
    "status.podIP": (pod) => pod.status?.podIP ?? "",
    "status.podIPs": (pod) => pod.status?.podIPs?.[0]?.ip ?? "",
    "status.nominatedNodeName": (pod) => pod.status?.nominatedNodeName ?? "",
  },
  columns,

  defaults({ spec }) {
    if (spec !== undefined) defaultPod(spec);
  },
  admit(pod, previous, context) {
    if (previous === undefined) admitPod(pod, context);
  },
  prepareCreate(pod) {
    pod.status = { phase: "Pending", qosClass: qosClass(pod.spec) };
  },
  validate: ({ spec }) => checkPodSpec("spec", spec),
  validateUpdate: checkPodUpdate,
  graceSeconds(pod, requested) {
    const phase = pod.status?.phase;
    if (!pod.spec?.nodeName || phase === "Failed" || phase === "Succeeded") return 0;
    const seconds = requested ?? pod.spec.terminationGracePeriodSeconds ?? 30;
    // A negative period means "as soon as the kubelet can", never "without the kubelet".
    return seconds < 0 ? 1 : seconds;
  },
});

function qosClass(spec: PodSpec | undefined): "Guaranteed" | "Burstable" | "BestEffort" {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const says = (amounts: Readonly<Record<string, string>> = {}, name: string) =>
    compareQuantities(amounts[name] ?? "0", "0") > 0;
  const named = ["cpu", "memory"];
  const isAny = containers.some(({ resources = {} }) =>
    named.some((name) => says(resources.limits, name) || says(resources.requests, name)),
  );
  if (!isAny) return "BestEffort";
  const isExact = containers.every(({ resources = {} }) =>
    named.every(
      (name) =>
        says(resources.limits, name) &&
        compareQuantities(resources.requests?.[name] ?? "0", resources.limits?.[name] ?? "0") === 0,
    ),
  );
  return isExact ? "Guaranteed" : "Burstable";
}

function gatesText({ spec, status }: Pod): string {
  const gates = spec?.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const open = gates.filter(({ conditionType }) =>
    (status?.conditions ?? []).some(({ type, status }) => type === conditionType && status === "True"),
  );
  return `${open.length}/${gates.length}`;
}
