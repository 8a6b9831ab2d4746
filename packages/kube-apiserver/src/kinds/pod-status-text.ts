// Computes the status and the numbers that `kubectl get pods` shows.
import type { ContainerState, ContainerStatus, Pod } from "kubernetes-types/core/v1.js";
import { ageSince } from "../table-columns.ts";

export function readyText({ spec, status }: Pod): string {
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
export function restartsText({ status }: Pod, nowMs: number): string {
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
