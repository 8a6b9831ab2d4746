// Deletes objects whose owners are gone, and handles the propagation policies foreground (dependents are deleted first)
// and orphan (dependents stay, without the owner).
//
// Before a deletion, the API is asked whether the owner is really gone, because the cached view may be stale.

import { equalJson } from "../json.ts";
import type { KubeObject, OwnerReference, ResourceKind } from "../types.ts";
import { refOf } from "./cluster-client.ts";
import type { WatchedKind } from "./cluster-view.ts";
import { type Controller, type ControllerDeps, controllerOf, createQueue, done } from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { keyOf } from "./live-objects.ts";

const foreground = "foregroundDeletion";
const orphan = "orphan";

export function createGarbageCollector(deps: ControllerDeps): Controller {
  const { view } = deps;
  const queue = createQueue("garbage-collector", deps);
  view.onAnyChange((kind, object, previous) => {
    if (object !== undefined && isNews(object, previous)) queue.add(itemKey(kind, object));
    if (object !== undefined || previous === undefined) return;
    // Its dependents may have lost their last owner, and its owners may be waiting for it.
    queue.add(`uid ${previous.metadata?.uid}`);
    for (const { uid } of previous.metadata?.ownerReferences ?? []) queue.add(`uid ${uid}`);
  });
  return controllerOf("garbage-collector", queue, (key, signal) => reconcile(deps, queue, key, signal));
}

/** Most changes, such as those of a pod's status, do not affect ownership. */
function isNews(object: KubeObject, previous: KubeObject | undefined): boolean {
  const { ownerReferences, finalizers, deletionTimestamp } = object.metadata ?? {};
  const isTouched =
    previous === undefined ||
    previous.metadata?.deletionTimestamp !== deletionTimestamp ||
    !equalJson(previous.metadata?.ownerReferences, ownerReferences) ||
    !equalJson(previous.metadata?.finalizers, finalizers);
  return isTouched && (hasOwners(object) || isWaiting(object));
}

function hasOwners({ metadata }: KubeObject): boolean {
  return (metadata?.ownerReferences ?? []).length > 0;
}

function isWaiting({ metadata }: KubeObject): boolean {
  const finalizers = metadata?.finalizers ?? [];
  return (
    metadata?.deletionTimestamp !== undefined &&
    (finalizers.includes(foreground) || finalizers.includes(orphan))
  );
}

function itemKey(kind: ResourceKind, object: KubeObject): string {
  return `item ${kind.group}|${kind.plural}|${keyOf(object)}`;
}

interface Adder {
  add(key: string): void;
}

async function reconcile(
  deps: ControllerDeps,
  queue: Adder,
  key: string,
  signal: AbortSignal,
): Promise<WorkOutcome> {
  const { view } = deps;
  const [type, text = ""] = [key.slice(0, key.indexOf(" ")), key.slice(key.indexOf(" ") + 1)];
  if (type === "uid") {
    for (const { kind, object } of view.dependentsOf(text)) queue.add(itemKey(kind, object));
    for (const { kind, objects } of view.kinds()) {
      const waiting = objects.withUid(text);
      if (waiting !== undefined && isWaiting(waiting)) queue.add(itemKey(kind, waiting));
    }
    return done;
  }
  const [group, plural, objectKey = ""] = text.split("|");
  const known = view.kinds().find(({ kind }) => kind.group === group && kind.plural === plural);
  const object = known?.objects.get(objectKey);
  if (known === undefined || object === undefined) return done;
  if (isWaiting(object)) await settleDependents(deps, known, object, signal);
  else if (hasOwners(object)) await collect(deps, known, object, signal);
  return done;
}

async function collect(
  deps: ControllerDeps,
  { kind, objects }: WatchedKind,
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  if (objects.isLeaving(object)) return;
  const owners = object.metadata?.ownerReferences ?? [];
  const states = await Promise.all(owners.map((owner) => ownerState(deps, object, owner, signal)));
  const solid = owners.filter((_, index) => states[index] === "solid");
  if (solid.length === owners.length) return;
  if (solid.length > 0) {
    // Another owner still exists, so only the dangling references are removed.
    await writeOwners(deps, { kind, objects }, object, solid, signal);
    return;
  }
  const mustBlock =
    states.includes("waiting") && deps.view.dependentsOf(object.metadata?.uid ?? "").length > 0;
  const propagation = mustBlock ? "Foreground" : "Background";
  await deps.client.remove(kind, refOf(object), { uid: object.metadata?.uid, propagation }, signal);
  objects.condemn(object);
}

/** "waiting": the owner is being deleted in the foreground, and waits for this object. */
async function ownerState(
  { view, client }: ControllerDeps,
  object: KubeObject,
  { apiVersion, kind, name, uid }: OwnerReference,
  signal: AbortSignal,
): Promise<"solid" | "waiting" | "absent"> {
  const known = view.findKind(apiVersion, kind);
  // A kind that is not served now may be served again later, so the owner may still exist.
  if (known === undefined) return "solid";
  const { namespace } = object.metadata ?? {};
  const ref = known.kind.namespaced && namespace !== undefined ? { namespace, name } : { name };
  const owner = await client.get(known.kind, ref, signal);
  if (owner === undefined || owner.metadata?.uid !== uid) return "absent";
  const isForeground = isWaiting(owner) && (owner.metadata?.finalizers ?? []).includes(foreground);
  return isForeground ? "waiting" : "solid";
}

async function settleDependents(
  deps: ControllerDeps,
  known: WatchedKind,
  owner: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  const { uid = "", finalizers = [] } = owner.metadata ?? {};
  const dependents = deps.view.dependentsOf(uid);
  if (finalizers.includes(orphan)) {
    for (const { kind, object } of dependents) {
      const kept = (object.metadata?.ownerReferences ?? []).filter((reference) => reference.uid !== uid);
      await writeOwners(deps, { kind, objects: deps.view.of(kind) }, object, kept, signal);
    }
    await dropFinalizer(deps, known, owner, orphan, signal);
    return;
  }
  for (const { kind, object } of dependents) {
    await collect(deps, { kind, objects: deps.view.of(kind) }, object, signal);
  }
  const blocking = dependents.filter(({ object }) =>
    (object.metadata?.ownerReferences ?? []).some(
      (reference) => reference.uid === uid && reference.blockOwnerDeletion === true,
    ),
  );
  if (blocking.length === 0) await dropFinalizer(deps, known, owner, foreground, signal);
}

async function writeOwners(
  deps: ControllerDeps,
  { kind, objects }: WatchedKind,
  object: KubeObject,
  ownerReferences: readonly OwnerReference[],
  signal: AbortSignal,
): Promise<void> {
  const changed = { ...object, metadata: { ...object.metadata, ownerReferences } };
  objects.observe(await deps.client.replace(kind, changed, "", signal));
}

async function dropFinalizer(
  deps: ControllerDeps,
  { kind, objects }: WatchedKind,
  object: KubeObject,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = (object.metadata?.finalizers ?? []).filter((name) => name !== finalizer);
  const changed = { ...object, metadata: { ...object.metadata, finalizers } };
  await deps.client.replace(kind, changed, "", signal);
  objects.condemn(object);
}
