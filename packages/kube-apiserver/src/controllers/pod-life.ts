// The state machine of a pod on its node. No I/O and no timers: from the current stage and its start it computes the next
// stage and when it is due.
//
//   assigned -> creating -> running -> ready          the normal path
//               creating -> pull-failed <-> pull-backoff
//               running/ready -> crashed -> running    with back-off
import type { Pod } from "kubernetes-types/core/v1.js";
import type { PodBehaviour } from "./pod-behaviour.ts";

export type Stage =
  | "assigned"
  | "creating"
  | "pull-failed"
  | "pull-backoff"
  | "running"
  | "ready"
  | "crashed";

export interface PodLife {
  readonly stage: Stage;
  /** Monotonic time at which the stage began. */
  readonly sinceMs: number;
  /** Failed pulls or crashes so far; each increases the back-off. */
  readonly failures: number;
  /** Monotonic time of the last start of the containers. */
  readonly startedMs: number;
}

export type NextStep =
  | { readonly kind: "stay" }
  | { readonly kind: "wait"; readonly untilMs: number; readonly stage: Stage };

const pullErrorShownMs = 1_000;
const pauseFirstMs = 10_000;
const pauseMaxMs = 300_000;

export function startLife(nowMs: number): PodLife {
  return { stage: "assigned", sinceMs: nowMs, failures: 0, startedMs: nowMs };
}

/** Continues a pod that a previous run of the simulated kubelet left. */
export function resumeLife({ status }: Pod, nowMs: number): PodLife {
  const first = status?.containerStatuses?.[0];
  const waiting = first?.state?.waiting?.reason;
  const stage: Stage = first?.ready
    ? "ready"
    : first?.state?.running !== undefined
      ? "running"
      : waiting === "CrashLoopBackOff"
        ? "crashed"
        : waiting === "ErrImagePull" || waiting === "ImagePullBackOff"
          ? "pull-backoff"
          : waiting === "ContainerCreating"
            ? "creating"
            : "assigned";
  return { stage, sinceMs: nowMs, failures: first?.restartCount ?? 0, startedMs: nowMs };
}

export function nextStep(life: PodLife, pod: Pod, behaviour: PodBehaviour): NextStep {
  const { stage, sinceMs, startedMs, failures } = life;
  const after = (delayMs: number, next: Stage): NextStep => ({
    kind: "wait",
    untilMs: sinceMs + delayMs,
    stage: next,
  });
  switch (stage) {
    case "assigned":
      return after(0, "creating");
    case "creating":
      if (behaviour.image === "missing") return after(behaviour.pullMs, "pull-failed");
      return after(behaviour.pullMs + behaviour.startMs, "running");
    case "pull-failed":
      return after(pullErrorShownMs, "pull-backoff");
    case "pull-backoff":
      if (behaviour.image === "missing") return after(pauseMs(failures), "pull-failed");
      return after(pauseMs(failures), "running");
    case "running":
    case "ready": {
      const crashMs = behaviour.crashAfterMs === "never" ? undefined : startedMs + behaviour.crashAfterMs;
      const readyMs = stage === "ready" ? undefined : readyAtMs(startedMs, pod, behaviour);
      if (crashMs !== undefined && (readyMs === undefined || crashMs <= readyMs))
        return { kind: "wait", untilMs: crashMs, stage: "crashed" };
      if (readyMs !== undefined) return { kind: "wait", untilMs: readyMs, stage: "ready" };
      // A rule that changes while the pod runs can make it unready again.
      if (stage === "ready" && behaviour.readyMs === "never") return after(0, "running");
      return { kind: "stay" };
    }
    case "crashed":
      // The first restart is immediate; back-off begins with the second.
      return after(failures <= 1 ? 0 : pauseMs(failures - 1), "running");
  }
}

/** The state after the transition. */
export function advance(life: PodLife, stage: Stage, nowMs: number): PodLife {
  const isFailure = stage === "pull-failed" || stage === "crashed";
  const isStart = stage === "running" && life.stage !== "ready";
  return {
    stage,
    sinceMs: nowMs,
    // A successful pull resets the count: later failures are crashes, not pulls.
    failures: isFailure ? life.failures + 1 : life.stage === "pull-backoff" && isStart ? 0 : life.failures,
    startedMs: isStart ? nowMs : life.startedMs,
  };
}

function pauseMs(failures: number): number {
  return Math.min(pauseFirstMs * 2 ** Math.max(failures - 1, 0), pauseMaxMs);
}

function readyAtMs(startedMs: number, { spec }: Pod, { readyMs }: PodBehaviour): number | undefined {
  if (readyMs === "never") return undefined;
  const delays = (spec?.containers ?? []).map(
    ({ readinessProbe, startupProbe }) =>
      Math.max(readinessProbe?.initialDelaySeconds ?? 0, startupProbe?.initialDelaySeconds ?? 0) * 1000,
  );
  return startedMs + readyMs + Math.max(0, ...delays);
}
