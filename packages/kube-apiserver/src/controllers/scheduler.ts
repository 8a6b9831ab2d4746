// Binds every pod to a node, or reports why it cannot be scheduled.
import type { Node, Pod } from "kubernetes-types/core/v1.js";
import { equalJson } from "../json.ts";
import { formatTimestamp } from "../timestamps.ts";
import { refOf } from "./cluster-client.ts";
import { type Controller, type ControllerDeps, controllerOf, createQueue, done } from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { keyOf } from "./live-objects.ts";
import { findNode, type Placement } from "./node-fit.ts";
import { conditionOf, isFinished } from "./pod-state.ts";
import { nodeKind, podKind } from "./watched-kinds.ts";

const schedulerName = "default-scheduler";

export function createScheduler(deps: ControllerDeps): Controller {
  const { view } = deps;
  const queue = createQueue("scheduler", deps);
  const crowd = new Map<string, number>();
  const count = (pod: Pod | undefined, by: number) => {
    const node = pod === undefined || isFinished(pod) ? undefined : pod.spec?.nodeName;
    if (node) crowd.set(node, (crowd.get(node) ?? 0) + by);
  };
  view.of(podKind).onChange((pod, previous) => {
    count(previous, -1);
    count(pod, 1);
    if (pod !== undefined && isWaiting(pod)) queue.add(keyOf(pod));
  });
  view.of(nodeKind).onChange((node, previous) => {
    const offer = (state: Node | undefined) => [state?.spec, state?.metadata?.labels];
    if (equalJson(offer(node), offer(previous))) return;
    for (const pod of view.of(podKind).all()) if (isWaiting(pod)) queue.add(keyOf(pod));
  });
  return controllerOf("scheduler", queue, (key, signal) =>
    schedule(
      deps,
      {
        podsMatching: (selector, namespace) => view.of(podKind).selectedBy(selector, namespace),
        countOn: (node) => crowd.get(node) ?? 0,
      },
      key,
      signal,
    ),
  );
}

function isWaiting(pod: Pod): boolean {
  const { nodeName, schedulerName: wanted = schedulerName, schedulingGates = [] } = pod.spec ?? {};
  return (
    !nodeName &&
    wanted === schedulerName &&
    schedulingGates.length === 0 &&
    pod.metadata?.deletionTimestamp === undefined &&
    !isFinished(pod)
  );
}

async function schedule(
  deps: ControllerDeps,
  placement: Placement,
  key: string,
  signal: AbortSignal,
): Promise<WorkOutcome> {
  const pods = deps.view.of(podKind);
  const pod = pods.get(key);
  if (pod === undefined || !isWaiting(pod) || pods.isLeaving(pod)) return done;
  const fit = findNode(pod, deps.view.of(nodeKind).all(), placement);
  if (fit.kind === "none") {
    await refuse(deps, pod, fit.message, signal);
    return done;
  }
  const ref = refOf(pod);
  const { name, namespace, uid } = pod.metadata ?? {};
  const binding = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
    },
    target: { apiVersion: "v1", kind: "Node", name: fit.name },
  };
  await deps.client.post(podKind, ref, "binding", binding, signal);
  // The next pod must be scheduled with this one taken into account.
  const bound = await deps.client.get(podKind, ref, signal);
  if (bound !== undefined) pods.observe(bound);
  return done;
}

async function refuse(deps: ControllerDeps, pod: Pod, message: string, signal: AbortSignal): Promise<void> {
  const known = conditionOf(pod, "PodScheduled");
  if (known?.status === "False" && known.message === message) return;
  const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  const condition = {
    type: "PodScheduled",
    status: "False",
    lastTransitionTime:
      known?.status === "False" ? (known.lastTransitionTime ?? "") : formatTimestamp(deps.clock.wallMs()),
    reason: "Unschedulable",
    message,
  };
  const status = { ...pod.status, conditions: [...others, condition] };
  deps.view.of(podKind).observe(await deps.client.replace(podKind, { ...pod, status }, "status", signal));
}
