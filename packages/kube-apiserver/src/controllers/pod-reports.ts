// Computes the pod status that a kubelet reports in each stage. No I/O.
import type {
  ContainerState,
  ContainerStatus,
  Pod,
  PodCondition,
  PodStatus,
} from "kubernetes-types/core/v1.js";
import type { Stage } from "./pod-life.ts";

export interface ReportFacts {
  readonly now: string;
  readonly podIP: string;
  readonly hostIP: string;
  readonly failures: number;
}

export function reportOf(pod: Pod, stage: Stage, facts: ReportFacts): PodStatus {
  const isUp = stage === "running" || stage === "ready" || stage === "crashed";
  const hasIP = isUp || pod.status?.podIP !== undefined;
  const containers = (pod.spec?.containers ?? []).map(({ name, image = "" }) =>
    containerReport(pod, name, image, stage, facts),
  );
  const isReady = stage === "ready";
  return {
    ...pod.status,
    phase: isUp ? "Running" : "Pending",
    conditions: conditions(pod, isReady, facts.now),
    hostIP: facts.hostIP,
    hostIPs: [{ ip: facts.hostIP }],
    ...(hasIP ? { podIP: facts.podIP, podIPs: [{ ip: facts.podIP }] } : {}),
    startTime: pod.status?.startTime ?? facts.now,
    containerStatuses: containers,
  } as PodStatus;
}

function containerReport(
  pod: Pod,
  name: string,
  image: string,
  stage: Stage,
  { now, failures }: ReportFacts,
): ContainerStatus {
  const known = (pod.status?.containerStatuses ?? []).find((container) => container.name === name);
  const restartCount = known?.restartCount ?? 0;
  const hasCrashed =
    known?.state?.waiting?.reason === "CrashLoopBackOff" || known?.state?.terminated !== undefined;
  const isRestart = stage === "running" && hasCrashed;
  return {
    name,
    state: stateOf(stage, known, image, failures, now),
    lastState: lastStateOf(stage, known, failures, now),
    ready: stage === "ready",
    restartCount: isRestart ? restartCount + 1 : restartCount,
    image,
    imageID: stage === "running" || stage === "ready" ? `docker.io/library/${image}` : (known?.imageID ?? ""),
    started: stage === "running" || stage === "ready",
  };
}

function lastStateOf(
  stage: Stage,
  known: ContainerStatus | undefined,
  failures: number,
  now: string,
): ContainerState {
  if (stage === "crashed" && failures > 1) return endedState(known, now, "Error", 1);
  // On a restart, the terminated state becomes the last state.
  if (stage === "running" && known?.state?.terminated !== undefined) return known.state;
  return known?.lastState ?? {};
}

function stateOf(
  stage: Stage,
  known: ContainerStatus | undefined,
  image: string,
  failures: number,
  now: string,
): ContainerState {
  switch (stage) {
    case "pull-failed":
      return waiting("ErrImagePull", `failed to pull image "${image}": not found`);
    case "pull-backoff":
      return waiting("ImagePullBackOff", `Back-off pulling image "${image}"`);
    case "crashed":
      if (failures <= 1) return endedState(known, now, "Error", 1);
      return waiting("CrashLoopBackOff", `back-off restarting failed container, attempt ${failures}`);
    case "running":
    case "ready":
      return { running: { startedAt: known?.state?.running?.startedAt ?? now } };
    default:
      return waiting("ContainerCreating");
  }
}

function waiting(reason: string, message?: string): ContainerState {
  return { waiting: { reason, ...(message === undefined ? {} : { message }) } };
}

function endedState(
  known: ContainerStatus | undefined,
  now: string,
  reason: string,
  exitCode: number,
): ContainerState {
  const startedAt = known?.state?.running?.startedAt ?? now;
  return { terminated: { exitCode, reason, startedAt, finishedAt: now } };
}

function conditions(pod: Pod, isReady: boolean, now: string): PodCondition[] {
  const names = (pod.spec?.containers ?? []).map(({ name }) => name).join(" ");
  const unready = isReady
    ? {}
    : { reason: "ContainersNotReady", message: `containers with unready status: [${names}]` };
  const gates = (pod.spec?.readinessGates ?? []).every(({ conditionType }) =>
    (pod.status?.conditions ?? []).some(({ type, status }) => type === conditionType && status === "True"),
  );
  const wanted: (Pick<PodCondition, "type" | "status"> & { reason?: string; message?: string })[] = [
    { type: "PodReadyToStartContainers", status: "True" },
    { type: "Initialized", status: "True" },
    { type: "Ready", status: isReady && gates ? "True" : "False", ...unready },
    { type: "ContainersReady", status: isReady ? "True" : "False", ...unready },
    { type: "PodScheduled", status: "True" },
  ];
  const known = pod.status?.conditions ?? [];
  const own = wanted.map((condition) => {
    const before = known.find(({ type }) => type === condition.type);
    const since = before?.status === condition.status ? (before.lastTransitionTime ?? now) : now;
    return { ...condition, lastTransitionTime: since };
  });
  return [...own, ...known.filter(({ type }) => !wanted.some((condition) => condition.type === type))];
}

/** The final status of a pod before it is removed. */
export function endReport(pod: Pod, now: string, wasKilled: boolean): PodStatus {
  const containers = (pod.status?.containerStatuses ?? []).map((container) => ({
    ...container,
    ready: false,
    started: false,
    state:
      container.state?.running === undefined
        ? (container.state ?? {})
        : endedState(container, now, wasKilled ? "Error" : "Completed", wasKilled ? 137 : 0),
  }));
  return {
    ...pod.status,
    conditions: conditions(pod, false, now),
    ...(containers.length === 0 ? {} : { containerStatuses: containers }),
  };
}
