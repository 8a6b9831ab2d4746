// Namespaces: a new one gets its default service account and the cluster's certificate
// authority; a deleted one is emptied, kind by kind, before it may go.

import { events } from "../kinds/events.ts";
import { StatusError } from "../status-error.ts";
import type { KubeObject, ResourceKind } from "../types.ts";
import { refOf } from "./cluster-client.ts";
import { type Controller, type ControllerDeps, controllerOf, createQueue, done } from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { configMapKind, namespaceKind, serviceAccountKind } from "./watched-kinds.ts";

const contentFinalizer = "kubernetes";
const rootCaName = "kube-root-ca.crt";
/** Pods end in their own time; until then there is nothing to do but look again. */
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
    // Pods find it beside their token. The server has no certificate, so it is empty.
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

/** Deletes what is there and answers how much that was: 0 only when a look found nothing at all. */
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
