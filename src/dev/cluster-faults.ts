// Faults in the cluster itself: pods die, images crash, people edit objects.
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { KubeApi } from "../kube/api.ts";
import { pods } from "../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../kube/types.ts";
import { DevError } from "./dev-error.ts";
import type { ActionRegion } from "./kind-actions.ts";
import { loadWantedObjects } from "./wanted-objects.ts";

export interface PodsOf {
  readonly namespace: string;
  readonly labelSelector: string;
  /** The owner of the pods. */
  readonly name: string;
}

export async function killOnePod(
  { cluster }: ActionRegion,
  { namespace, labelSelector, name }: PodsOf,
  signal: AbortSignal,
): Promise<string> {
  const { items } = await cluster.api.list(pods, { namespace, labelSelector }, signal);
  const names = items
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata?.name ?? "");
  const [target] = names.sort();
  if (target === undefined) throw new DevError("nothing_to_do", `${name} has no pod to kill`);
  await cluster.api.delete(pods, { namespace, name: target }, { gracePeriodSeconds: 1 }, signal);
  return `killed pod ${target}`;
}

const crashAfterMs = 1_000;

/** Affects every object that runs the image. */
export async function toggleImageCrash(
  region: ActionRegion,
  image: string,
  signal: AbortSignal,
): Promise<string> {
  const { behaviours } = region.cluster;
  if (behaviours === undefined)
    throw new DevError("nothing_to_do", "images can be made to crash only in the embedded cluster");
  const rule = `crash ${image}`;
  const objects = await loadWantedObjects(region, signal);
  const affected = objects.filter(({ spec }) => "image" in spec && spec.image === image).length;
  const isCrashing =
    behaviours.of({ spec: { containers: [{ name: "any", image }] } }).crashAfterMs !== "never";
  if (isCrashing) {
    behaviours.remove(rule);
    return `${image} runs again`;
  }
  behaviours.set(rule, { image, behaviour: { crashAfterMs } });
  const where = affected === 1 ? "one object" : `${affected} objects`;
  return `${image} now crashes, in ${where}; press the key again to fix it`;
}

export interface HandEdit<T extends KubeObject> {
  readonly kind: ResourceKind<T>;
  /** What is applied by force. */
  readonly manifest: T;
  /** What was done, as the first part of a sentence. */
  readonly told: string;
  isRepaired(live: T): boolean;
}

const stranger = "somebody";
const repairTimeoutMs = 10_000;

// A repair takes milliseconds and would go unnoticed, so the edit waits for it.
export async function editByHand<T extends KubeObject>(
  { cluster, clock }: ActionRegion,
  { kind, manifest, told, isRepaired }: HandEdit<T>,
  signal: AbortSignal,
): Promise<string> {
  const { namespace = "", name = "" } = manifest.metadata ?? {};
  // Applying it before it exists would create an object that krane does not own.
  const live = await cluster.api.get(kind, { namespace, name }, { detail: "metadata" }, signal);
  if (live === undefined) throw new DevError("nothing_to_do", `${kind.kind} ${name} does not exist yet`);
  const options = { fieldManager: stranger, force: true };
  const { object } = await cluster.api.apply(kind, manifest, options, signal);
  const startedMs = clock.nowMs();
  const repaired = await withTimeout(clock, repairTimeoutMs, signal, (until) =>
    waitForChange(cluster.api, kind, object, isRepaired, until),
  ).catch((error: unknown) => {
    if (error instanceof DeadlineError) return false;
    throw error;
  });
  const tookMs = Math.round(clock.nowMs() - startedMs);
  return repaired ? `${told}; krane repaired it after ${tookMs} ms` : `${told}; krane did not repair it`;
}

async function waitForChange<T extends KubeObject>(
  api: KubeApi,
  kind: ResourceKind<T>,
  { metadata }: KubeObject,
  isSeen: (live: T) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = "", name, resourceVersion = "" } = metadata ?? {};
  const selection = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion };
  for await (const event of api.watch(kind, selection, signal)) {
    if (event.type !== "BOOKMARK" && isSeen(event.object)) return true;
  }
  return false;
}
