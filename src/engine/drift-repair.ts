// Repairs what server-side apply cannot: fields that others added stay through every apply, and some make it invalid.
//
// - A patch carries the resourceVersion of the object that was read, so it never removes what was written since.
// - A dry run comes first. What the server puts back in its response comes from admission (or is a default that krane
//   does not know): a real patch would achieve nothing, now and after every restart of krane. It is remembered and shown.
import type { KubeApi, PatchOperation, ReplaceOperation } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "../model/labels.ts";
import { manifestHashOf } from "../model/manifest-hash.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { isConflict, isInvalid, isRefusal, isRefusedContent } from "./classify.ts";
import { type DriftedField, disownOthers, repairOf } from "./drifted-fields.ts";
import { isSameContent } from "./field-changes.ts";
import { isRecord, type Json, ownApply } from "./field-owners.ts";
import type { OwnedObject } from "./plan.ts";

export interface Repair {
  readonly object: OwnedObject;
  /** What differed and no longer does. */
  readonly fields: readonly DriftedField[];
}

export function countRepair(
  { object: { kind }, fields }: Repair,
  controller: string,
  { metrics }: { readonly metrics: Pick<Metrics, "driftRepairs"> },
): void {
  metrics.driftRepairs.inc({ controller, resource: kind.kind.toLowerCase() }, fields.length);
}

export interface DriftRepairDeps {
  readonly api: KubeApi;
  onRepair(repair: Repair): void;
}

// Kubernetes' controllers write the status of an object whenever its spec changes, so a first conflict is likely.
const attempts = 5;
const bulkyBytes = 128 * 1024;

export interface Cleaned {
  readonly live: KubeObject;
  readonly writes: number;
  /** What still differs. */
  readonly left: readonly DriftedField[];
}

interface Limited {
  readonly live: KubeObject;
  /** How many pods it may have, if this changed that. */
  readonly replicas?: number;
}

export class DriftRepair {
  private readonly deps: DriftRepairDeps;

  constructor(deps: DriftRepairDeps) {
    this.deps = deps;
  }

  /** Undoes what an apply left. `live` has just been applied or read. */
  clean(object: OwnedObject, live: KubeObject, signal: AbortSignal): Promise<Cleaned> {
    return this.withFresh(object, live, signal, (current) => this.cleanOnce(object, current, signal));
  }

  /** Does something with the object, and again with its newest state after a conflict. */
  private async withFresh<R>(
    object: OwnedObject,
    live: KubeObject,
    signal: AbortSignal,
    act: (current: KubeObject) => Promise<R>,
  ): Promise<R> {
    for (let current = live, left = attempts; ; left--) {
      try {
        return await act(current);
      } catch (error) {
        if (!isConflict(error) || left <= 1) throw error;
        const found = await this.deps.api.get(object.kind, object.ref, {}, signal);
        if (found === undefined || found.metadata?.uid !== live.metadata?.uid) throw error;
        current = found;
      }
    }
  }

  private async cleanOnce(object: OwnedObject, live: KubeObject, signal: AbortSignal): Promise<Cleaned> {
    const drifted = object.driftOf(live);
    const operations = repairOf(drifted.filter(({ isUnknownDefault }) => !isUnknownDefault));
    const unchanged = { live, writes: 0, left: drifted };
    if (operations.length === 0) return unchanged;
    const outlook = await this.tryOut(object, live, operations, signal);
    if (outlook === "invalid") return unchanged;
    if (outlook !== "unknown" && isSame(drifted, object.driftOf(outlook))) return unchanged;
    // A list that is written as a whole looks different only because another entry of managedFields has it.
    if (outlook !== "unknown" && isSameContent(live, outlook)) return unchanged;
    const repaired = await this.patch(object, live, operations, false, signal);
    object.wrote(repaired);
    return { live: repaired, writes: 1, left: object.driftOf(repaired) };
  }

  /** What would lower the isolation of its pods after an apply, of which `applied` is a dry run, and a repair. */
  async weaknessAfter(
    object: OwnedObject,
    live: KubeObject,
    applied: KubeObject,
    signal: AbortSignal,
  ): Promise<string> {
    const weakness = object.weaknessOf(applied);
    // Otherwise somebody may have added it to the live object, where it is until the repair.
    if (weakness === "" || object.weaknessOf(live) === "") return weakness;
    const operations = repairOf(object.driftOf(live).filter(({ isUnknownDefault }) => !isUnknownDefault));
    const outlook = operations.length === 0 ? live : await this.tryOut(object, live, operations, signal);
    // Without an outlook, the real write tells.
    return outlook === "unknown" || outlook === "invalid" ? "" : object.weaknessOf(outlook);
  }

  /** Lowers the number of its pods to those that may run, if it has more. */
  limitReplicas(object: OwnedObject, live: KubeObject, signal: AbortSignal): Promise<Limited> {
    const value = object.replicasHeld();
    return this.withFresh(object, live, signal, async (current) => {
      const { spec } = current as KubeObject & { readonly spec?: { readonly replicas?: number } };
      // If only the next write would weaken it, no write is enough.
      if (object.weaknessOf(current) === "" || (spec?.replicas ?? 1) <= value) return { live: current };
      const operations = [{ op: "add" as const, path: "/spec/replicas", value }];
      const limited = await this.patch(object, current, operations, false, signal);
      object.wrote(limited);
      return { live: limited, replicas: value };
    });
  }

  /** Reports the fields that differed in the first state of the object and no longer do in the second. */
  report(object: OwnedObject, before: KubeObject, after: KubeObject): void {
    const still = new Set(object.driftOf(after).map(({ path }) => path));
    const fields = object
      .driftOf(before)
      .filter(({ path, isUnknownDefault }) => !isUnknownDefault && !still.has(path));
    if (fields.length > 0) this.deps.onRepair({ object, fields });
  }

  /**
   * Applies an object that the server refused to apply, after removing what may have made it invalid. Throws the
   * refusal if nothing helps.
   */
  async applyAfter<T>(
    refusal: unknown,
    object: OwnedObject,
    uid: string,
    apply: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const { api } = this.deps;
    if (!isRefusedContent(refusal)) throw refusal;
    for (const remedy of isInvalid(refusal)
      ? [movedItems, addedFields, unrecorded, disowned, bulky]
      : [addedFields, unrecorded]) {
      const found = await api.get(object.kind, object.ref, {}, signal);
      if (found?.metadata?.uid !== uid) throw refusal;
      const operations = remedy(object, found);
      if (operations.length === 0) continue;
      try {
        await this.patch(object, found, operations, false, signal);
        return await apply();
      } catch (error) {
        if (!isRefusedContent(error)) throw error;
      }
    }
    throw refusal;
  }

  /** "unknown": a webhook on the way refuses dry runs. "invalid": the server would refuse the patch. */
  private async tryOut(
    object: OwnedObject,
    live: KubeObject,
    operations: readonly PatchOperation[],
    signal: AbortSignal,
  ): Promise<KubeObject | "unknown" | "invalid"> {
    try {
      return await this.patch(object, live, operations, true, signal);
    } catch (error) {
      // A patch is applied before its precondition is checked, so a stale one may be invalid too.
      if (isInvalid(error) && (await this.isStale(object, live, signal))) throw staleError(error);
      if (isRefusedContent(error)) return "invalid";
      if (isConflict(error) || !isRefusal(error)) throw error;
      return "unknown";
    }
  }

  private async isStale({ kind, ref }: OwnedObject, live: KubeObject, signal: AbortSignal): Promise<boolean> {
    const found = await this.deps.api.get(kind, ref, { detail: "metadata" }, signal);
    return found?.metadata?.resourceVersion !== live.metadata?.resourceVersion;
  }

  private patch(
    object: OwnedObject,
    live: KubeObject,
    operations: readonly PatchOperation[],
    dryRun: boolean,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const all = [...lostLabels(object, live), ...operations];
    const options = { fieldManager, ...(dryRun && { dryRun }) };
    return this.deps.api.patch(object.kind, live, all, options, signal);
  }
}

/**
 * The chart's admission policy refuses every write that leaves an object without krane's label, and every apply that leaves a
 * weaker template. So labels and fields that were edited together go back together.
 */
function lostLabels(object: OwnedObject, { metadata }: KubeObject): readonly PatchOperation[] {
  const { labels: wanted = {} } = object.manifest().metadata ?? {};
  const live = metadata?.labels;
  if (Object.entries(wanted).every(([name, value]) => live?.[name] === value)) return [];
  return [{ op: "add", path: "/metadata/labels", value: { ...live, ...wanted } }];
}

/** Puts items back whose key was edited. */
function movedItems(object: OwnedObject, found: KubeObject): readonly PatchOperation[] {
  const manifest = object.manifest();
  return wasAccepted(object, found) || wasPatched(found) ? findMovedItems(manifest, found) : [];
}

/** Removes what others added and, if the server accepted this manifest before, undoes everything that they changed. */
function addedFields(object: OwnedObject, found: KubeObject): readonly PatchOperation[] {
  const fields = wasAccepted(object, found) ? object.driftOf(found) : object.addedTo(found);
  return repairOf(fields.filter(({ isUnknownDefault }) => !isUnknownDefault));
}

/**
 * Somebody has removed the record of what krane applied, so nothing tells what was added since. The apply that restores it is
 * refused as long as the template is weaker than krane's. A whole member at a time is replaced.
 */
function unrecorded(object: OwnedObject, found: KubeObject): readonly PatchOperation[] {
  if (ownApply(found) !== undefined) return [];
  const { spec = {} } = object.manifest() as KubeObject & { readonly spec?: Json };
  return Object.entries(spec).map(([name, value]) => ({ op: "add", path: `/spec/${name}`, value }));
}

/** Another manager may own a field that krane wants to drop, with the value of the server's default. */
function disowned(_: OwnedObject, found: KubeObject): readonly PatchOperation[] {
  return disownOthers(found);
}

/** Annotations of others that leave no room for krane's: Kubernetes limits all of them together to 256 KiB. */
function bulky(object: OwnedObject, { metadata }: KubeObject): readonly PatchOperation[] {
  const own = new Set([...Object.keys(object.manifest().metadata?.annotations ?? {}), annotationKeys.seal]);
  const others = Object.entries(metadata?.annotations ?? {}).filter(([name]) => !own.has(name));
  const bytes = others.reduce(
    (sum, [name, text]) => sum + Buffer.byteLength(name) + Buffer.byteLength(text),
    0,
  );
  if (bytes < bulkyBytes) return [];
  return others.map(([name]) => ({ op: "remove", path: `/metadata/annotations/${pointerStep(name)}` }));
}

/**
 * If the server accepted this very manifest before, an edit is what broke it. A manifest that it never accepted may
 * itself be invalid, and no part of it must get in through a patch.
 */
function wasAccepted(object: OwnedObject, found: KubeObject): boolean {
  return manifestHashOf(found) === manifestHashOf(object.manifest());
}

/** A patch made krane a second owner of the item, so an apply cannot remove it. */
function wasPatched({ metadata }: KubeObject): boolean {
  return (metadata?.managedFields ?? []).some(
    ({ manager, operation, subresource }) =>
      manager === fieldManager && operation === "Update" && !subresource,
  );
}

function staleError(cause: unknown): KubeApiError {
  const facts = { status: 409, reason: "Conflict", cause };
  return new KubeApiError("refused", "the object has changed since it was read", facts);
}

function isSame(before: readonly DriftedField[], after: readonly DriftedField[]): boolean {
  return pathsOf(before) === pathsOf(after);
}

function pathsOf(fields: readonly DriftedField[]): string {
  return JSON.stringify(fields.map(({ path, value }) => [path, value]));
}

/**
 * Finds list items whose key was edited, and returns the patch that restores them.
 *
 * Server-side apply identifies the items of most lists by a key: the port of a Service by its number. If somebody
 * edits that number, an apply sees a different item and adds krane's beside it; the server then rejects two ports
 * with the same name. So no apply can undo the edit. A patch can, because it addresses the index and not the key.
 * Fields outside of lists are left out: an apply repairs those.
 */
export function findMovedItems(manifest: KubeObject, live: KubeObject): ReplaceOperation[] {
  return inObject(manifest as Json, live as Json, "", false);
}

function inObject(wanted: Json, live: Json, path: string, isItem: boolean): ReplaceOperation[] {
  return Object.entries(wanted).flatMap(([name, value]) => {
    const found = live[name];
    const place = `${path}/${pointerStep(name)}`;
    if (Array.isArray(value)) return Array.isArray(found) ? inList(value, found, place) : [];
    if (isRecord(value)) return isRecord(found) ? inObject(value, found, place, isItem) : [];
    // An apply adds what is missing.
    const isMoved = isItem && found !== undefined && found !== value;
    return isMoved ? [{ op: "replace" as const, path: place, value }] : [];
  });
}

function pointerStep(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function inList(wanted: readonly unknown[], live: readonly unknown[], path: string): ReplaceOperation[] {
  return wanted.flatMap((item, index) => {
    if (!isRecord(item)) return [];
    const at = placeOf(item, index, wanted.length, live);
    const found = live[at];
    return isRecord(found) ? inObject(item, found, `${path}/${at}`, true) : [];
  });
}

/** Finds the item by its name if it has one, else by its index, if the live list has as many items as krane's. */
function placeOf(item: Json, index: number, count: number, live: readonly unknown[]): number {
  const { name } = item;
  if (name !== undefined) return live.findIndex((other) => isRecord(other) && other["name"] === name);
  return live.length === count ? index : -1;
}
