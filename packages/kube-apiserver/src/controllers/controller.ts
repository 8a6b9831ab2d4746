// A controller: a queue of keys and a function that reconciles the object of a key. It is level-triggered: a key says
// that something may have changed, not what.
import type { ApiServerDeps } from "../clock.ts";
import { apiVersionOf } from "../resource.ts";
import type { KubeObject, OwnerReference, ResourceKind } from "../types.ts";
import type { ClusterClient } from "./cluster-client.ts";
import type { ClusterView } from "./cluster-view.ts";
import { KeyQueue, type Reconcile, type WorkOutcome } from "./key-queue.ts";

export interface ControllerDeps extends ApiServerDeps {
  readonly client: ClusterClient;
  readonly view: ClusterView;
  /** Called for every failed attempt, including conflicts, which are normal. */
  onError(controller: string, key: string, error: unknown): void;
}

export interface Controller {
  readonly name: string;
  /** Resolves when the signal has aborted. */
  run(signal: AbortSignal): Promise<void>;
}

export const done: WorkOutcome = { kind: "done" };

export function createQueue(name: string, deps: ControllerDeps): KeyQueue {
  return new KeyQueue(deps, (key, error) => deps.onError(name, key, error));
}

export function controllerOf(name: string, queue: KeyQueue, reconcile: Reconcile): Controller {
  return { name, run: (signal) => queue.run(reconcile, signal) };
}

/** The owner reference of the object's controller. */
export function controllerOwner({ metadata }: KubeObject): OwnerReference | undefined {
  return (metadata?.ownerReferences ?? []).find(({ controller }) => controller === true);
}

export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  return controllerOwner(object)?.uid === owner.metadata?.uid;
}

export function controllerReference(
  kind: ResourceKind,
  owner: KubeObject,
): OwnerReference & {
  controller: true;
  blockOwnerDeletion: true;
} {
  return {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    name: owner.metadata?.name ?? "",
    uid: owner.metadata?.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}
