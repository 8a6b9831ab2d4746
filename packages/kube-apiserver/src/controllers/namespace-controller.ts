// Reconciles namespaces: creates the default service account and the CA ConfigMap in new ones, and empties deleted ones,
// kind by kind, before they are removed.

import { events } from "../kinds/events.ts";
import { StatusError } from "../status-error.ts";
import type { KubeObject, ResourceKind } from "../types.ts";
import { refOf } from "./cluster-client.ts";
import { type Controller, type ControllerDeps, controllerOf, createQueue, done } from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { configMapKind, namespaceKind, serviceAccountKind } from "./watched-kinds.ts";

const contentFinalizer = "kubernetes";
const rootCaName = "kube-root-ca.crt";
/** How often to check whether the pods have terminated. */
const lookAgainMs = 1_000;

export function createNamespaceController(deps: ControllerDeps): Controller {
  const queue = createQueue("namespace", deps);
  const look = (namespace: string | undefined) => queue.add(`/${namespace ?? ""}`);
  deps.view
    .of(namespaceKind)
    .onChange((namespace, previous) => look((namespace ?? previous)?.metadata?.name));
  for (const kind of [serviceAccountKind, configMapKind]) {
    deps.view.of(kind as ResourceKind).onChange((object, previous) => {
      if (object === undefined) look(previous?.metadata?.namespace);
    });
  }
  return controllerOf("namespace", queue, (key, signal) => reconcile(deps, key, signal));
}

async function reconcile(deps: ControllerDeps, key: string, signal: AbortSignal): Promise<WorkOutcome> {
  const namespace = deps.view.of(namespaceKind).get(key);
  if (namespace === undefined) return done;
  const { name = "", deletionTimestamp } = namespace.metadata ?? {};
  if (deletionTimestamp === undefined) {
    await ensure(deps, serviceAccountKind, name, { metadata: { name: "default", namespace: name } }, signal);
    // Mounted next to the pod's token. Empty, because the server has no certificate.
    const data = { "ca.crt": "" };
    await ensure(
      deps,
      configMapKind,
      name,
      { metadata: { name: rootCaName, namespace: name }, data } as KubeObject,
      signal,
    );
    return done;
  }
  const finalizers = namespace.spec?.finalizers ?? [];
  if (!finalizers.includes(contentFinalizer)) return done;
  const left = await empty(deps, name, signal);
  if (left > 0) return { kind: "again", afterMs: lookAgainMs };
  const spec = {
    ...namespace.spec,
    finalizers: finalizers.filter((finalizer) => finalizer !== contentFinalizer),
  };
  await deps.client.replace(namespaceKind, { ...namespace, spec }, "finalize", signal);
  return done;
}

async function ensure(
  { client, view }: ControllerDeps,
  kind: ResourceKind,
  namespace: string,
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  if (view.of(kind).get(`${namespace}/${object.metadata?.name}`) !== undefined) return;
  try {
    view.of(kind).observe(await client.create(kind, object, signal));
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
  }
}

/** Deletes all objects in the namespace and returns how many it found. */
async function empty(
  { client, view }: ControllerDeps,
  namespace: string,
  signal: AbortSignal,
): Promise<number> {
  let left = 0;
  const kinds = [...view.kinds().map(({ kind }) => kind), events.kind];
  for (const kind of kinds) {
    if (!kind.namespaced) continue;
    const { items } = await client.list(kind, namespace, signal);
    left += items.length;
    for (const object of items) {
      if (object.metadata?.deletionTimestamp !== undefined) continue;
      const options = { uid: object.metadata?.uid, propagation: "Background" } as const;
      await client.remove(kind, refOf(object), options, signal);
    }
  }
  return left;
}
