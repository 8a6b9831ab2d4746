// Reconciles nodes: keeps them ready, and simulates lost ones. A lost node gets its conditions and taints; its pods
// become unready immediately, and are deleted after their tolerationSeconds.
import type { Node, NodeCondition, Pod, Taint } from "kubernetes-types/core/v1.js";
import { equalJson } from "../json.ts";
import { formatTimestamp, parseTimestamp } from "../timestamps.ts";
import { refOf } from "./cluster-client.ts";
import { type Controller, type ControllerDeps, controllerOf, createQueue, done } from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { tolerates } from "./node-fit.ts";
import { isActive } from "./pod-state.ts";
import { nodeKind, podKind } from "./watched-kinds.ts";

const unreachable = "node.kubernetes.io/unreachable";
const notReady = "node.kubernetes.io/not-ready";

/** The set of lost nodes. It can change at any time. */
export class LostNodes {
  private readonly names = new Set<string>();
  private readonly listeners: ((name: string) => void)[] = [];

  has(name: string): boolean {
    return this.names.has(name);
  }

  lose(name: string): void {
    this.names.add(name);
    for (const listener of this.listeners) listener(name);
  }

  restore(name: string): void {
    this.names.delete(name);
    for (const listener of this.listeners) listener(name);
  }

  onChange(listener: (name: string) => void): void {
    this.listeners.push(listener);
  }
}

export function createNodeController(deps: ControllerDeps, lost: LostNodes): Controller {
  const { view } = deps;
  const queue = createQueue("node", deps);
  const look = (name: string | undefined) => queue.add(`/${name ?? ""}`);
  view.of(nodeKind).onChange((node) => {
    if (node !== undefined) look(node.metadata?.name);
  });
  view.of(podKind).onChange((pod, previous) => {
    const isMoved = pod?.spec?.nodeName !== previous?.spec?.nodeName;
    if (pod?.spec?.nodeName && isMoved && lost.has(pod.spec.nodeName)) look(pod.spec.nodeName);
  });
  lost.onChange(look);
  return controllerOf("node", queue, (key, signal) => reconcile(deps, lost, key, signal));
}

async function reconcile(
  deps: ControllerDeps,
  lost: LostNodes,
  key: string,
  signal: AbortSignal,
): Promise<WorkOutcome> {
  const nodes = deps.view.of(nodeKind);
  const node = nodes.get(key);
  if (node === undefined) return done;
  const isLost = lost.has(node.metadata?.name ?? "");
  const now = formatTimestamp(deps.clock.wallMs());
  const conditions = conditionsOf(node, isLost, now);
  let current = node;
  if (!equalJson(conditions, node.status?.conditions)) {
    const status = { ...node.status, conditions };
    current = await deps.client.replace(nodeKind, { ...node, status }, "status", signal);
    nodes.observe(current);
  }
  const taints = taintsOf(current, isLost, now);
  if (!equalJson(taints, current.spec?.taints ?? [])) {
    const spec = { ...current.spec, taints };
    nodes.observe(await deps.client.replace(nodeKind, { ...current, spec }, "", signal));
  }
  return isLost ? leave(deps, current, signal) : done;
}

function conditionsOf({ status }: Node, isLost: boolean, now: string): NodeCondition[] {
  const wanted = isLost
    ? { status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status." }
    : { status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" };
  const known = status?.conditions ?? [];
  const before = known.find(({ type }) => type === "Ready");
  if (before?.status === wanted.status) return [...known];
  const ready = { type: "Ready", ...wanted, lastHeartbeatTime: now, lastTransitionTime: now };
  return [...known.filter(({ type }) => type !== "Ready"), ready];
}

function taintsOf({ spec }: Node, isLost: boolean, now: string): Taint[] {
  const kept = (spec?.taints ?? []).filter(({ key }) => key !== unreachable && key !== notReady);
  if (!isLost) return kept;
  const known = (spec?.taints ?? []).find(({ key, effect }) => key === unreachable && effect === "NoExecute");
  return [
    ...kept,
    { key: unreachable, effect: "NoSchedule", timeAdded: known?.timeAdded ?? now },
    { key: unreachable, effect: "NoExecute", timeAdded: known?.timeAdded ?? now },
  ];
}

async function leave(deps: ControllerDeps, node: Node, signal: AbortSignal): Promise<WorkOutcome> {
  const pods = deps.view.of(podKind);
  const nowMs = deps.clock.wallMs();
  const since = (deps.view.of(nodeKind).get(`/${node.metadata?.name}`)?.spec?.taints ?? []).find(
    ({ key, effect }) => key === unreachable && effect === "NoExecute",
  )?.timeAdded;
  let nextMs: number | undefined;
  for (const pod of pods.all()) {
    if (pod.spec?.nodeName !== node.metadata?.name || !isActive(pod)) continue;
    await markUnready(deps, pod, signal);
    const toleratedMs = tolerationMs(pod);
    if (toleratedMs === undefined || pods.isLeaving(pod)) continue;
    const dueMs = (parseTimestamp(since ?? "") ?? nowMs) + toleratedMs;
    if (dueMs > nowMs) nextMs = Math.min(nextMs ?? dueMs, dueMs);
    else await deps.client.remove(podKind, refOf(pod), { uid: pod.metadata?.uid }, signal);
  }
  return nextMs === undefined ? done : { kind: "again", afterMs: nextMs - nowMs };
}

/** How long the pod stays on a lost node; undefined: forever. */
function tolerationMs({ spec }: Pod): number | undefined {
  const taint = { key: unreachable, effect: "NoExecute" };
  const matching = (spec?.tolerations ?? []).filter((toleration) => tolerates(toleration, taint));
  if (matching.length === 0) return 0;
  const limits = matching.flatMap(({ tolerationSeconds }) => tolerationSeconds ?? []);
  return limits.length === 0 ? undefined : Math.max(0, Math.min(...limits)) * 1000;
}

async function markUnready(deps: ControllerDeps, pod: Pod, signal: AbortSignal): Promise<void> {
  const known = pod.status?.conditions ?? [];
  if (!known.some(({ type, status }) => type === "Ready" && status === "True")) return;
  const lastTransitionTime = formatTimestamp(deps.clock.wallMs());
  const conditions = known.map((condition) =>
    condition.type === "Ready" ? { ...condition, status: "False", lastTransitionTime } : condition,
  );
  const status = { ...pod.status, conditions };
  deps.view.of(podKind).observe(await deps.client.replace(podKind, { ...pod, status }, "status", signal));
}
