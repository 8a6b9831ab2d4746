// Tells what krane did to an object beyond applying new desired state: one log line and one Event for every deletion,
// repair, eviction and adoption that a person allowed, with the authority or the cause. Neither contains a secret (K7).
import { isAbort } from "../concurrency/abort.ts";
import type { KubeApi } from "../kube/api.ts";
import { objectKey } from "../kube/object-cache.ts";
import type { KubeObject, ManagedFieldsEntry } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "../model/labels.ts";
import { manifestHashOf } from "../model/manifest-hash.ts";
import type { Log } from "../telemetry/log.ts";
import { printable } from "../telemetry/scrub.ts";
import { classifyFailure } from "./classify.ts";
import type { DeletionBasis } from "./deletion-guard.ts";
import { type FieldChange, fieldText, findChangedFields } from "./field-changes.ts";
import { ownerOfField } from "./field-owners.ts";
import type { LastRepairs } from "./last-repairs.ts";
import type { EventReason, EventRecorder, EventSubject } from "./object-events.ts";
import type { PodWeakness } from "./pod-replacement.ts";
import { shownValue } from "./shown-values.ts";

export interface ActionRecordsDeps {
  readonly controller: string;
  readonly api: Pick<KubeApi, "get">;
  readonly log: Log;
  readonly events: Pick<EventRecorder, "record">;
  readonly repairs: Pick<LastRepairs, "add">;
}

/** The object that is about to be written. */
export interface WrittenObject {
  /** The key of the work queue. */
  readonly key: string | undefined;
  readonly subject: EventSubject;
  manifest(): KubeObject;
}

/** What is known about an object before it is written. */
export type BeforeWrite =
  /** krane writes a new desired state, or creates the object for the first time. */
  | { readonly kind: "not-a-repair" }
  /** The object is missing, although krane wrote it. */
  | { readonly kind: "missing" }
  /** The object differs from what krane wrote; undefined if it could not be read. */
  | {
      readonly kind: "drifted";
      readonly object: KubeObject | undefined;
      /** This process wrote it, so it was sealed. */
      readonly wasSealed?: boolean;
    };

const notARepair: BeforeWrite = { kind: "not-a-repair" };

// An Event names this many fields; the rest is counted.
const fieldsMax = 4;
const managerCharsMax = 64;
const deletedMax = 10_000;

export class ActionRecords {
  private readonly deps: ActionRecordsDeps;
  /** The objects that krane itself deleted: creating one of them again is not a repair. */
  private readonly deleted = new Set<string>();

  constructor(deps: ActionRecordsDeps) {
    this.deps = deps;
  }

  /** `isGone`: no finalizer or grace period holds it. */
  recordDeletion(
    key: string,
    subject: EventSubject,
    { authority, reason }: DeletionBasis,
    isGone: boolean,
  ): void {
    if (this.deleted.size >= deletedMax) this.deleted.clear();
    this.deleted.add(nameOf(subject));
    const isOrdered = authority === "explicit delete" || authority === "unused";
    const outcome = isGone ? "deleted" : "deleting";
    const fields = { ...this.fieldsOf(key, subject), operation: "delete", outcome, authority, reason };
    this.deps.log[isOrdered ? "info" : "warn"]("deleted an object", fields);
    const done = isGone
      ? "krane deleted this object."
      : "krane asked Kubernetes to delete this object; it is still being deleted.";
    const message = `${done} Authority: ${authority} (${reason}).`;
    this.deps.events.record({ subject, type: isOrdered ? "Normal" : "Warning", reason: "Deleted", message });
  }

  /** `reason`: why it was not krane's before. */
  recordAdoption(key: string, subject: EventSubject, reason: string): void {
    const fields = { ...this.fieldsOf(key, subject), operation: "adopt", reason };
    this.deps.log.warn("adopted an object of another krane", fields);
    const message = `An operator allowed krane to adopt this object. Before that: ${reason}.`;
    this.deps.events.record({ subject, type: "Normal", reason: "Adopted", message });
  }

  recordBlockedDeletion(subject: EventSubject, reason: string): void {
    const message = `The control plane does not know this object. krane is holding back its deletion: ${reason}.`;
    this.deps.events.record({ subject, type: "Warning", reason: "DeletionBlocked", message });
  }

  /** A pod that is less isolated than its template. */
  recordEviction(key: string, subject: EventSubject, { what, changedBy }: PodWeakness): void {
    const reason = `it is less isolated than its template: ${what}, changed by ${changedBy}`;
    this.deps.log.warn("evicted a pod", { ...this.fieldsOf(key, subject), operation: "evict", reason });
    const message = `krane evicted this pod: ${reason}.`;
    this.deps.events.record({ subject, type: "Warning", reason: "Evicted", message });
  }

  /** `replicas`: how many pods the object may have. */
  recordHold(key: string, subject: EventSubject, replicas: number, reason: string): void {
    const fields = { ...this.fieldsOf(key, subject), operation: "hold", count: replicas, reason };
    this.deps.log.warn("limited the pods of an object", fields);
    const message = `krane limited this object to ${replicas} ${replicas === 1 ? "pod" : "pods"}: ${reason}.`;
    this.deps.events.record({ subject, type: "Warning", reason: "Held", message });
  }

  /** Call it before a write. `wasWritten`: whether this process wrote this manifest before; undefined if it cannot know. */
  async beforeWrite(
    { subject, manifest }: Pick<WrittenObject, "subject" | "manifest">,
    wasWritten: boolean | undefined,
    signal: AbortSignal,
  ): Promise<BeforeWrite> {
    if (wasWritten === false) return notARepair;
    const isMissing = subject.uid === "";
    if (isMissing) return wasWritten && !this.deleted.has(nameOf(subject)) ? { kind: "missing" } : notARepair;
    const object = await this.read(subject, signal);
    const isRepair = wasWritten ?? (object !== undefined && isFormOf(object, manifest()));
    return isRepair ? { kind: "drifted", object, wasSealed: wasWritten === true } : notARepair;
  }

  /** The same for an object that was read anyway, and that has no hash of its manifest. */
  judgeRead(object: KubeObject | undefined, manifest: KubeObject, wasThere: boolean): BeforeWrite {
    if (object === undefined) return wasThere ? { kind: "missing" } : notARepair;
    const isRepair = findChangedFields(object, manifest, manifest).some(
      ({ path, before, after }) =>
        after !== undefined && (isOthers(ownerOfField(object, path)) || (wasThere && before === undefined)),
    );
    return isRepair ? { kind: "drifted", object, wasSealed: wasThere } : notARepair;
  }

  /** Call it after a write, with the object as the server stored it. */
  recordWrite({ key, subject, manifest }: WrittenObject, before: BeforeWrite, stored: KubeObject): void {
    this.deleted.delete(nameOf(subject));
    if (before.kind === "missing") {
      const uid = stored.metadata?.uid ?? "";
      this.recordRepair(key, { ...subject, uid }, "Recreated", {
        reason: "the object was missing; Kubernetes does not record who deleted an object",
      });
      return;
    }
    if (before.kind !== "drifted") return;
    if (before.object === undefined) {
      this.recordRepair(key, subject, "Repaired", {
        reason: "the object could not be read before the repair",
      });
      return;
    }
    const changes = findRepairedFields(before.object, stored, manifest(), before.wasSealed ?? false);
    const [first] = changes;
    // Nothing differs if admission puts back what krane changes.
    if (first === undefined) return;
    const owner = ownerOfField(before.object, first.path);
    this.recordRepair(key, subject, "Repaired", {
      reason: reasonOf(before.object, changes),
      field: fieldText(first.path),
      before: shownValue(first.path, first.before),
      after: shownValue(first.path, first.after),
      fieldManager: managerOf(owner),
      count: changes.length,
    });
  }

  private recordRepair(
    key: string | undefined,
    subject: EventSubject,
    eventReason: Extract<EventReason, "Repaired" | "Recreated">,
    facts: RepairFacts,
  ): void {
    const isMissing = eventReason === "Recreated";
    const fields = { ...this.fieldsOf(key, subject), operation: "repair", ...facts };
    this.deps.log.warn(isMissing ? "recreated an object" : "repaired an object", fields);
    const message = `krane ${isMissing ? "created this object again" : "repaired this object"}: ${facts.reason}.`;
    this.deps.events.record({ subject, type: "Warning", reason: eventReason, message });
    this.deps.repairs.add(key, subject, facts.reason);
  }

  private fieldsOf(key: string | undefined, { kind, ref, uid }: EventSubject) {
    const { controller } = this.deps;
    return { controller, key, kind: kind.kind, namespace: ref.namespace, name: ref.name, uid };
  }

  /** A failure does not stop the repair; the log then lacks the details. */
  private async read({ kind, ref, uid }: EventSubject, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      const found = await this.deps.api.get(kind, ref, {}, signal);
      return found?.metadata?.uid === uid ? found : undefined;
    } catch (error) {
      if (isAbort(error, signal) || classifyFailure(error) === undefined) throw error;
      return undefined;
    }
  }
}

interface RepairFacts {
  readonly reason: string;
  readonly field?: string;
  readonly before?: string;
  readonly after?: string;
  readonly fieldManager?: string;
  readonly count?: number;
}

function nameOf({ kind, ref }: EventSubject): string {
  return `${kind.kind} ${objectKey(ref)}`;
}

/**
 * Whether krane applied this very manifest before. The hash that it left on the object tells, unless somebody changed
 * that hash; then it no longer belongs to krane's apply, and the change itself is drift.
 */
function isFormOf(live: KubeObject, manifest: KubeObject): boolean {
  const hash = manifestHashOf(live);
  if (hash === undefined) return false;
  return hash === manifestHashOf(manifest) || isOthers(ownerOfField(live, manifestHashPath));
}

const manifestHashPath = ["metadata", "annotations", annotationKeys.manifestHash];

const sealPath = ["metadata", "annotations", annotationKeys.seal];

/**
 * The seal is not part of the manifest. Writing one is a repair if somebody changed or removed it, but not if krane adopts
 * an object or seals it with a new key.
 */
function findRepairedFields(
  before: KubeObject,
  stored: KubeObject,
  manifest: KubeObject,
  wasSealed: boolean,
): readonly FieldChange[] {
  const seal = stored.metadata?.annotations?.[annotationKeys.seal];
  const { metadata } = manifest;
  const annotations = seal === undefined ? {} : { [annotationKeys.seal]: seal };
  const sealed = {
    ...manifest,
    metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } },
  };
  return findChangedFields(before, stored, sealed).filter((change) => {
    if (fieldText(change.path) !== fieldText(sealPath)) return true;
    return change.before === undefined ? wasSealed : isOthers(ownerOfField(before, change.path));
  });
}

function isOthers(owner: ManagedFieldsEntry | undefined): boolean {
  return owner !== undefined && !(owner.manager === fieldManager && owner.operation === "Apply");
}

function reasonOf(object: KubeObject, changes: readonly FieldChange[]): string {
  const texts = changes.slice(0, fieldsMax).map(({ path, before, after }) => {
    const owner = ownerOfField(object, path);
    const by = owner === undefined ? "unknown" : `field manager ${JSON.stringify(managerOf(owner))}`;
    const through = owner?.subresource ? ` through subresource ${printable(owner.subresource)}` : "";
    const at = owner?.time === undefined ? "" : ` at ${printable(owner.time)}`;
    const values = `${shownValue(path, before)} -> ${shownValue(path, after)}`;
    return `${fieldText(path)}: ${values}, changed by ${by}${through}${at}`;
  });
  const left = changes.length - texts.length;
  return [...texts, ...(left > 0 ? [`and ${left} more fields`] : [])].join("; ");
}

/** Whatever the client called itself. */
function managerOf(owner: ManagedFieldsEntry | undefined): string {
  return printable(owner?.manager ?? "unknown").slice(0, managerCharsMax);
}
