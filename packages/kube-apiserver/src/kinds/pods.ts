// Pods. An unscheduled pod is deleted immediately. A scheduled one gets a deletion timestamp and stays until its kubelet
// confirms that the containers have exited.
import type {
  Container,
  ContainerState,
  ContainerStatus,
  Pod,
  PodSpec,
  Toleration,
} from "kubernetes-types/core/v1.js";
import { forbiddenField, required } from "../causes.ts";
import { equalJson } from "../json.ts";
import { compareQuantities } from "../quantities.ts";
import { type Column, defineResource } from "../resource.ts";
import { ageColumn, ageSince, nameColumn } from "../table-columns.ts";
import type { KubeStatusCause } from "../types.ts";
import type { Causes } from "./field-checks.ts";
import { admitPod } from "./pod-admission.ts";
import { defaultPod } from "./pod-spec-defaults.ts";
import { checkPodSpec } from "./pod-spec-validation.ts";

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
  deleteReturnsObject: true,
  subresources: ["binding", "eviction", "log"],
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

const onlyThese =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
  "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

function checkPodUpdate(pod: Pod, previous: Pod): Causes {
  const { spec } = pod;
  const before = previous.spec;
  if (spec === undefined || before === undefined) return [];
  for (const list of ["containers", "initContainers"] as const) {
    if ((spec[list] ?? []).length !== (before[list] ?? []).length)
      return [forbiddenField(`spec.${list}`, "pod updates may not add or remove containers")];
  }
  const found: KubeStatusCause[] = [
    ...checkImages("spec.containers", spec.containers),
    ...checkImages("spec.initContainers", spec.initContainers),
  ];
  if (!keepsTolerations(spec.tolerations, before.tolerations)) {
    const why = "existing toleration can not be modified except its tolerationSeconds";
    found.push(forbiddenField("spec.tolerations", why));
  }
  const isKept = equalJson(fixedPart(spec), fixedPart(before));
  if (!isKept) found.push(forbiddenField("spec", onlyThese));
  return found;
}

function checkImages(field: string, containers: readonly Container[] | undefined): Causes {
  return (containers ?? []).flatMap(({ image = "" }, index) =>
    image === "" ? [required(`${field}[${index}].image`)] : [],
  );
}

function keepsTolerations(now: readonly Toleration[] = [], before: readonly Toleration[] = []): boolean {
  const kept = new Set(now.map(withoutSeconds));
  return before.every((toleration) => kept.has(withoutSeconds(toleration)));
}

function withoutSeconds({ key, operator, value, effect }: Toleration): string {
  return JSON.stringify([key, operator, value, effect]);
}

function fixedPart(spec: PodSpec): unknown {
  const withoutImage = ({ image: _, ...container }: Container) => container;
  const {
    activeDeadlineSeconds: _deadline,
    tolerations: _tolerations,
    terminationGracePeriodSeconds: grace = 0,
    ...rest
  } = spec;
  return {
    ...rest,
    terminationGracePeriodSeconds: grace < 0 ? 1 : grace,
    containers: (spec.containers ?? []).map(withoutImage),
    initContainers: (spec.initContainers ?? []).map(withoutImage),
  };
}

// Computes the status and the numbers that `kubectl get pods` shows.

function readyText({ spec, status }: Pod): string {
  const ready = (status?.containerStatuses ?? []).filter(
    (container) => container.ready && container.state?.running !== undefined,
  );
  return `${ready.length}/${(spec?.containers ?? []).length}`;
}

export function statusText(pod: Pod): string {
  const { status, metadata } = pod;
  const text = initText(pod) ?? containersText(pod);
  if (metadata?.deletionTimestamp === undefined) return text;
  if (status?.reason === "NodeLost") return "Unknown";
  return status?.phase === "Failed" || status?.phase === "Succeeded" ? text : "Terminating";
}

/** The number of container restarts, and the time of the last one. */
function restartsText({ status }: Pod, nowMs: number): string {
  const containers = status?.containerStatuses ?? [];
  const restarts = containers.reduce((sum, container) => sum + (container.restartCount ?? 0), 0);
  const ends = containers.map((container) => container.lastState?.terminated?.finishedAt ?? "");
  const last = ends.sort().at(-1) ?? "";
  return restarts === 0 || last === "" ? `${restarts}` : `${restarts} (${ageSince(last, nowMs)} ago)`;
}

// Init containers run one after the other; the first that has not succeeded decides the status.
function initText({ spec, status }: Pod): string | undefined {
  const containers = status?.initContainerStatuses ?? [];
  const index = containers.findIndex(({ state }) => state?.terminated?.exitCode !== 0);
  const stuck = containers[index];
  if (stuck === undefined) return undefined;
  if (stuck.state?.terminated !== undefined) return `Init:${endText(stuck.state.terminated)}`;
  const { reason = "" } = stuck.state?.waiting ?? {};
  if (reason !== "" && reason !== "PodInitializing") return `Init:${reason}`;
  return `Init:${index}/${(spec?.initContainers ?? []).length}`;
}

function containersText({ status }: Pod): string {
  const containers = status?.containerStatuses ?? [];
  let text = status?.reason || status?.phase || "";
  for (const container of [...containers].reverse()) text = troubleText(container) ?? text;
  const isRunning = containers.some(({ ready, state }) => ready && state?.running !== undefined);
  if (text !== "Completed" || !isRunning) return text;
  const isReady = (status?.conditions ?? []).some(
    ({ type, status }) => type === "Ready" && status === "True",
  );
  return isReady ? "Running" : "NotReady";
}

function troubleText({ state }: ContainerStatus): string | undefined {
  if (state?.waiting?.reason) return state.waiting.reason;
  return state?.terminated === undefined ? undefined : endText(state.terminated);
}

function endText({ reason, signal, exitCode }: NonNullable<ContainerState["terminated"]>): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}
