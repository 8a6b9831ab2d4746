// Starts and stops all controllers, which make the API server a cluster.
//
// They use only the injected clock and randomness and the API, so a run can be repeated. After the signal aborts, no
// watch, timer or pending write is left.
import { type ApiServerDeps, onAbort } from "../clock.ts";
import type { ApiHandler } from "../handler.ts";
import type { ObjectRef } from "../types.ts";
import { ClusterClient } from "./cluster-client.ts";
import { ClusterView } from "./cluster-view.ts";
import type { Controller, ControllerDeps } from "./controller.ts";
import { createDeploymentController } from "./deployment-controller.ts";
import { createDisruptionController } from "./disruption-controller.ts";
import { createGarbageCollector } from "./garbage-collector.ts";
import { createKubelet } from "./kubelet.ts";
import { createNamespaceController } from "./namespace-controller.ts";
import { createNodeController, LostNodes } from "./node-controller.ts";
import { type PodBehaviour, PodBehaviours } from "./pod-behaviour.ts";
import { createReplicaSetController } from "./replicaset-controller.ts";
import { createScheduler } from "./scheduler.ts";
import { podKind } from "./watched-kinds.ts";

export interface ControllersDeps extends ApiServerDeps {
  /** Called for failed attempts, which are retried. */
  onError?(controller: string, key: string, error: unknown): void;
}

export interface ControllersOptions {
  readonly behaviour?: Partial<PodBehaviour>;
}

export interface RunningControllers {
  /** How pods behave; rules can be set and removed at any time. */
  readonly behaviours: PodBehaviours;
  readonly nodes: LostNodes;
  /** Deletes a pod as `kubectl delete --now` does. */
  killPod(pod: ObjectRef, signal: AbortSignal): Promise<void>;
  /** Resolves when the signal has aborted and everything has ended. */
  readonly done: Promise<void>;
}

export function startControllers(
  handler: ApiHandler,
  options: ControllersOptions,
  deps: ControllersDeps,
  signal: AbortSignal,
): RunningControllers {
  const { clock, random } = deps;
  const client = new ClusterClient(handler, "kube-controller-manager");
  const kubeletClient = new ClusterClient(handler, "kubelet");
  const onError = (part: string, key: string, error: unknown) => deps.onError?.(part, key, error);
  const view = new ClusterView({ client, clock, random, onError });
  const shared: ControllerDeps = { client, view, clock, random, onError };
  const behaviours = new PodBehaviours(options.behaviour);
  const nodes = new LostNodes();
  const controllers = [
    createNamespaceController(shared),
    createNodeController(shared, nodes),
    createDeploymentController(shared),
    createReplicaSetController(shared),
    createScheduler({ ...shared, client: new ClusterClient(handler, "kube-scheduler") }),
    createKubelet({ ...shared, client: kubeletClient }, behaviours),
    createDisruptionController(shared),
    createGarbageCollector(shared),
  ];
  const killPod = (pod: ObjectRef, until: AbortSignal) =>
    client.remove(podKind, pod, { graceSeconds: 1 }, until);
  return { behaviours, nodes, killPod, done: runAll(view, controllers, signal) };
}

async function runAll(
  view: ClusterView,
  controllers: readonly Controller[],
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const watching = view.run(signal);
  const stopped = new Promise<void>((resolve) => void onAbort(signal, resolve));
  // Before the first lists, all objects would look absent, and would be created again or garbage-collected.
  await Promise.race([view.synced(), stopped]);
  await Promise.all(controllers.map((controller) => controller.run(signal)));
  await watching;
}
