// Simulates all kubelets: moves the pods of every healthy node through their stages and reports their status, but runs
// nothing. State beyond the pod's own status (when a stage began, how often it failed) is kept in memory by uid.
import type { Node, Pod } from "kubernetes-types/core/v1.js";
import { formatTimestamp, parseTimestamp } from "../timestamps.ts";
import { refOf } from "./cluster-client.ts";
import { type Controller, type ControllerDeps, controllerOf, createQueue, done } from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { keyOf } from "./live-objects.ts";
import type { PodBehaviours } from "./pod-behaviour.ts";
import { advance, nextStep, type PodLife, resumeLife, type Stage, startLife } from "./pod-life.ts";
import { endReport, reportOf } from "./pod-reports.ts";
import { conditionOf, isFinished } from "./pod-state.ts";
import { nodeKind, podKind } from "./watched-kinds.ts";

export function createKubelet(deps: ControllerDeps, behaviours: PodBehaviours): Controller {
  const { view } = deps;
  const queue = createQueue("kubelet", deps);
  const kubelet = new Kubelet(deps, behaviours);
  view.of(podKind).onChange((pod, previous) => {
    if (pod === undefined) kubelet.forget(previous);
    else if (pod.spec?.nodeName) queue.add(keyOf(pod));
  });
  const lookAtAll = (node?: string) => {
    for (const pod of view.of(podKind).all()) {
      const { nodeName } = pod.spec ?? {};
      if (nodeName && (node === undefined || node === nodeName)) queue.add(keyOf(pod));
    }
  };
  view.of(nodeKind).onChange((node, previous) => {
    if (isHealthy(node) !== isHealthy(previous)) lookAtAll((node ?? previous)?.metadata?.name);
  });
  behaviours.onChange(() => lookAtAll());
  return controllerOf("kubelet", queue, (key, signal) => kubelet.reconcile(key, signal));
}

function isHealthy(node: Node | undefined): boolean {
  return (node?.status?.conditions ?? []).some(({ type, status }) => type === "Ready" && status === "True");
}

class Kubelet {
  private readonly deps: ControllerDeps;
  private readonly behaviours: PodBehaviours;
  private readonly lives = new Map<string, PodLife>();
  private readonly addresses = new Map<string, string>();
  private readonly nextHost = new Map<string, number>();

  constructor(deps: ControllerDeps, behaviours: PodBehaviours) {
    this.deps = deps;
    this.behaviours = behaviours;
  }

  forget(pod: Pod | undefined): void {
    this.lives.delete(pod?.metadata?.uid ?? "");
    this.addresses.delete(pod?.metadata?.uid ?? "");
  }

  async reconcile(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const pod = this.deps.view.of(podKind).get(key);
    const node = this.deps.view.of(nodeKind).get(`/${pod?.spec?.nodeName}`);
    // A lost node's kubelet reports nothing, not even that a pod has terminated.
    if (pod === undefined || node === undefined || !isHealthy(node)) return done;
    if (pod.metadata?.deletionTimestamp !== undefined) return this.end(pod, signal);
    return isFinished(pod) ? done : this.live(pod, node, signal);
  }

  private async live(pod: Pod, node: Node, signal: AbortSignal): Promise<WorkOutcome> {
    const { uid = "" } = pod.metadata ?? {};
    const nowMs = this.deps.clock.nowMs();
    const isNew = (pod.status?.containerStatuses ?? []).length === 0;
    const life = this.lives.get(uid) ?? (isNew ? startLife(nowMs) : resumeLife(pod, nowMs));
    this.lives.set(uid, life);
    const step = nextStep(life, pod, this.behaviours.of(pod));
    // Another controller may have reported the status of a lost node's pods; its kubelet overrides that.
    if (
      life.stage === "ready" &&
      conditionOf(pod, "ContainersReady")?.status !== conditionOf(pod, "Ready")?.status
    )
      await this.report(pod, node, life.stage, life, signal);
    if (step.kind === "stay") return done;
    if (step.untilMs > nowMs) return { kind: "again", afterMs: step.untilMs - nowMs };
    const next = advance(life, step.stage, nowMs);
    await this.report(pod, node, step.stage, next, signal);
    this.lives.set(uid, next);
    return { kind: "again", afterMs: 0 };
  }

  private async report(
    pod: Pod,
    node: Node,
    stage: Stage,
    { failures }: PodLife,
    signal: AbortSignal,
  ): Promise<void> {
    const hostIP = (node.status?.addresses ?? []).find(({ type }) => type === "InternalIP")?.address ?? "";
    const now = formatTimestamp(this.deps.clock.wallMs());
    const facts = { now, podIP: this.addressOf(pod, node), hostIP, failures };
    await this.write({ ...pod, status: reportOf(pod, stage, facts) }, signal);
  }

  private async write(pod: Pod, signal: AbortSignal): Promise<void> {
    this.deps.view.of(podKind).observe(await this.deps.client.replace(podKind, pod, "status", signal));
  }

  /** Takes addresses of the node's range in turn, so that they are reused late. */
  private addressOf(pod: Pod, node: Node): string {
    const { uid = "" } = pod.metadata ?? {};
    const known = pod.status?.podIP ?? this.addresses.get(uid);
    if (known !== undefined) return known;
    const { name = "" } = node.metadata ?? {};
    const [first = "10", second = "0"] = (node.spec?.podCIDR ?? "10.0.0.0/16").split(".");
    const host = this.nextHost.get(name) ?? 1;
    this.nextHost.set(name, host >= 65_534 ? 1 : host + 1);
    const address = `${first}.${second}.${host >> 8}.${host & 255}`;
    this.addresses.set(uid, address);
    return address;
  }

  private async end(pod: Pod, signal: AbortSignal): Promise<WorkOutcome> {
    const { deletionTimestamp = "", deletionGracePeriodSeconds = 0, uid } = pod.metadata ?? {};
    const endMs = parseTimestamp(deletionTimestamp) ?? 0;
    const begunMs = endMs - deletionGracePeriodSeconds * 1000;
    const isRunning = (pod.status?.containerStatuses ?? []).some(({ state }) => state?.running !== undefined);
    const stoppedMs = isRunning ? begunMs + this.behaviours.of(pod).stopMs : begunMs;
    const waitMs = Math.min(stoppedMs, endMs) - this.deps.clock.wallMs();
    if (waitMs > 0) return { kind: "again", afterMs: waitMs };
    const now = formatTimestamp(this.deps.clock.wallMs());
    if (isRunning) await this.write({ ...pod, status: endReport(pod, now, stoppedMs > endMs) }, signal);
    await this.deps.client.remove(podKind, refOf(pod), { uid, graceSeconds: 0 }, signal);
    return done;
  }
}
