// Writes one object: seals its manifest, applies it, undoes what an apply cannot, and records what it changed.
//
// - Before an object that krane applied before is written again, it is read, so that a repair can be told with its cause.
// - An object whose isolation the cluster itself lowers gets no new pods.
import type { KubeApi } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import { objectKey } from "../kube/object-cache.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "../model/labels.ts";
import { manifestHashOf } from "../model/manifest-hash.ts";
import type { Ownership } from "../model/ownership.ts";
import type { Seal, SealedIds } from "../model/seal.ts";
import type { ActionRecords, BeforeWrite, WrittenObject } from "./action-records.ts";
import { appliedPart } from "./applied-content.ts";
import { isConflict, isImmutable, isRefusal, isRefusedContent } from "./classify.ts";
import type { DriftMemory } from "./drift-memory.ts";
import { DriftRepair, type Repair } from "./drift-repair.ts";
import { type DriftedField, describeDrift } from "./drifted-fields.ts";
import { isSameContent } from "./field-changes.ts";
import type { CheckedObject, LiveEntry, OwnedObject, OwnedTarget } from "./plan.ts";

export interface ObjectWriterDeps {
  readonly api: KubeApi;
  readonly drift: DriftMemory;
  readonly seal: Seal;
  readonly actions: ActionRecords;
  /** Called after each repair. */
  onRepair?(repair: Repair): void;
  /** Somebody else wrote to this namespace at the same time. */
  onConflict(namespace: string): void;
}

export type WriteOutcome =
  | { readonly kind: "applied"; readonly writes: number; readonly rest?: Rest }
  /** The cluster lowers the isolation of its pods, so it gets no new ones. */
  | { readonly kind: "held"; readonly reason: string };

/** What an apply leaves. */
export interface Rest {
  /** What still differs because the cluster itself changes it, for people. */
  readonly left: string;
  /** The content is right, and what is left is to seal it, after this long. */
  readonly sealAfterMs?: number;
}

interface FoundDrift {
  readonly object: KubeObject;
  readonly needsApply: boolean;
  /** What lowers its isolation, whatever krane writes. */
  readonly weakness?: string;
}

// By default the server decodes a manifest twice, the second time to warn about unknown fields: a tenth of what an
// apply costs it, and krane does not read warnings. Built-in kinds reject unknown fields in any case, and the tests
// send every manifest with "Strict".
const applyOptions = { fieldManager, fieldValidation: "Ignore" } as const;

export class ObjectWriter {
  private readonly deps: ObjectWriterDeps;
  private readonly repair: DriftRepair;

  constructor(deps: ObjectWriterDeps) {
    this.deps = deps;
    this.repair = new DriftRepair({ api: deps.api, onRepair: (repair) => deps.onRepair?.(repair) });
  }

  /** Applies the object if need be, and undoes what the apply left. */
  async write(
    object: OwnedObject,
    live: LiveEntry | undefined,
    key: string,
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    const { kind, ref, contentHash } = object;
    const name = nameOf(object);
    const { drift, actions } = this.deps;
    const subject = { kind, ref, uid: live?.uid ?? "" };
    const written = { key, subject, manifest: () => object.manifest() };
    // What is not sealed is applied in any case.
    const found =
      live && isSealed(live.ownership) ? await this.findDrift(object, name, live, signal) : undefined;
    if (found?.weakness)
      return this.hold(object, key, { live: found.object, weakness: found.weakness }, signal);
    const before: BeforeWrite = found
      ? { kind: "drifted", object: found.object }
      : await actions.beforeWrite(written, drift.wasSent(name, contentHash), signal);
    let current = found?.object;
    let writes = 0;
    if (current === undefined || found?.needsApply) {
      try {
        current = await this.send(object, live, signal);
      } catch (error) {
        // What a webhook weakens on the way, the chart's policy refuses. The template stays weak then.
        const weakness = found && isRefusedContent(error) ? object.weaknessOf(found.object) : "";
        if (found === undefined || weakness === "") throw error;
        return this.hold(object, key, { live: found.object, weakness, refusal: error }, signal);
      }
      if (!isAnswerAbout(current, ref, live)) throw untrueAnswer(name);
      writes += 1;
      // The usual case: the server has exactly what was sent.
      if (object.wrote(current).contentHash === contentHash) {
        drift.wrote(name, contentHash, contentHash);
        this.record(object, written, before, current);
        return applied(writes);
      }
    }
    const cleaned = await this.repair.clean(object, current, signal);
    writes += cleaned.writes;
    if (writes > 0) this.record(object, written, before, cleaned.live);
    const weakness = object.weaknessOf(cleaned.live);
    if (weakness !== "") return this.hold(object, key, { live: cleaned.live, weakness }, signal);
    const stored = object.hashOf(cleaned.live);
    const left = describeLeft(name, cleaned.left);
    if (writes > 0) drift.wrote(name, contentHash, stored, left);
    else drift.saw(name, contentHash, stored, left);
    return applied(writes, { left });
  }

  /** Keeps an object whose template the cluster weakens from getting new pods. */
  private async hold(
    object: OwnedObject,
    key: string,
    { live, ...found }: Weakened,
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    const { kind, ref } = object;
    const name = nameOf(object);
    const { live: held, replicas } = await this.repair.limitReplicas(object, live, signal);
    const reason = heldReason(name, found);
    const subject = { kind, ref, uid: held.metadata?.uid ?? "" };
    if (replicas !== undefined) this.deps.actions.recordHold(key, subject, replicas, reason);
    this.deps.drift.saw(name, object.contentHash, object.hashOf(held), reason, true);
    return { kind: "held", reason };
  }

  private record(object: OwnedObject, written: WrittenObject, before: BeforeWrite, stored: KubeObject): void {
    this.deps.actions.recordWrite(written, before, stored);
    if (before.kind === "drifted" && before.object !== undefined)
      this.repair.report(object, before.object, stored);
  }

  /**
   * Reads an object that should be as the manifest says, because the same manifest was applied before; undefined if
   * another one was. It says what differs, and whether an apply would change anything: not if a webhook changes what
   * krane applies, within the same request.
   */
  private async findDrift(
    object: OwnedObject,
    name: string,
    live: LiveEntry,
    signal: AbortSignal,
  ): Promise<FoundDrift | undefined> {
    const { api, drift } = this.deps;
    if (live.manifestHash === undefined || live.manifestHash !== manifestHashOf(object.manifest()))
      return undefined;
    const found = await api.get(object.kind, object.ref, {}, signal);
    if (found?.metadata?.uid !== live.uid) return undefined;
    const hash = object.hashOf(found);
    if (appliedPart(hash) === object.contentHash) return { object: found, needsApply: false };
    // This process knows what the server made of its last write, so only the first of them is tried out.
    if (drift.knows(name) && !drift.isHeld(name)) return { object: found, needsApply: true };
    const outlook = await this.applyManifest(object, live, true, signal).catch(ignoreRefusal);
    if (outlook === undefined) return { object: found, needsApply: true };
    const weakness = await this.repair.weaknessAfter(object, found, outlook, signal);
    const after = object.hashOf(outlook);
    // Without this, an apply that only moves a field between entries of managedFields would follow every restart.
    const isIdle = after !== object.contentHash && isSameContent(found, outlook);
    return { object: found, needsApply: after !== hash && !isIdle, weakness };
  }

  private async send(
    object: OwnedObject,
    live: LiveEntry | undefined,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { ref } = object;
    const apply = () => this.applyManifest(object, live, false, signal);
    try {
      return await apply();
    } catch (error) {
      if (isConflict(error) && ref.namespace !== undefined) this.deps.onConflict(ref.namespace);
      if (live === undefined) throw error;
      if (isConflict(error)) await this.noteIfGone(object, live.uid, signal);
      return this.repair.applyAfter(error, object, live.uid, apply, signal);
    }
  }

  /** A conflict may mean that the object was deleted and the watch has not shown it: the manifest carries its uid. */
  private async noteIfGone(object: OwnedObject, uid: string, signal: AbortSignal): Promise<void> {
    const found = await this.deps.api.get(object.kind, object.ref, {}, signal);
    if (found?.metadata?.uid !== uid) object.gone(uid);
  }

  private async applyManifest(
    object: OwnedObject,
    live: LiveEntry | undefined,
    dryRun: boolean,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const manifest = this.sealed(object, live);
    const options = { ...applyOptions, force: live !== undefined, ...(dryRun && { dryRun }) };
    return (await this.deps.api.apply(object.kind, manifest, options, signal)).object;
  }

  /** Applies an object that is not watched, and returns it. `wasThere`: this process has seen or written it before. */
  async writeChecked(
    object: CheckedObject,
    live: KubeObject | undefined,
    { key, wasThere }: { readonly key: string; readonly wasThere: boolean },
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { api, actions } = this.deps;
    const { kind, ref } = object;
    const uid = live?.metadata?.uid ?? "";
    const manifest = this.sealed(object, live && { uid, ownership: object.judge(live) });
    const options = { ...applyOptions, force: live !== undefined, detail: "metadata" } as const;
    const { object: stored } = await api.apply(kind, manifest, options, signal);
    const subject = { kind, ref, uid };
    const before = actions.judgeRead(live, manifest, wasThere);
    // The response has the metadata only; the rest is stored as it was sent.
    const after = { ...manifest, ...(stored.metadata && { metadata: stored.metadata }) };
    actions.recordWrite({ key, subject, manifest: () => manifest }, before, after);
    return after;
  }

  /**
   * Gives an object back the labels that krane's watch selects by. Returns false if there is nothing to do: it is gone,
   * it has them again, or no seal proves that it is krane's.
   */
  async relabel(target: OwnedTarget, key: string, signal: AbortSignal): Promise<boolean> {
    const { api, actions } = this.deps;
    const { kind, ref } = target;
    const found = await api.get(kind, ref, {}, signal);
    if (found === undefined || target.entryOf(found).ownership.kind !== "ours") return false;
    const { uid = "", labels } = found.metadata ?? {};
    const wanted = target.selectedLabelsOf(found);
    const lost = Object.entries(wanted).filter(([name, value]) => labels?.[name] !== value);
    if (lost.length === 0) return false;
    const operations = [{ op: "add" as const, path: "/metadata/labels", value: { ...labels, ...wanted } }];
    const stored = await api.patch(kind, found, operations, { fieldManager }, signal);
    target.wrote(stored);
    const manifest = () => ({ metadata: { ...ref, labels: wanted } });
    actions.recordWrite(
      { key, subject: { kind, ref, uid }, manifest },
      { kind: "drifted", object: found },
      stored,
    );
    return true;
  }

  /** The manifest as it is sent: sealed, and for the live object only, if there is one. */
  private sealed(object: SealedObject, live: Pick<LiveEntry, "uid" | "ownership"> | undefined): KubeObject {
    const { kind, ref } = object;
    const isAdopted = live !== undefined && (live.ownership.kind !== "ours" || live.ownership.isAdopted);
    const text = this.deps.seal.write({ kind, ...ref }, object.ids(), isAdopted ? live.uid : "");
    const manifest = object.manifest();
    const annotations = { ...manifest.metadata?.annotations, [annotationKeys.seal]: text };
    const uid = live === undefined ? {} : { uid: live.uid };
    return { ...manifest, metadata: { ...manifest.metadata, ...uid, annotations } };
  }
}

/** An object whose template is weaker than krane's. */
interface Weakened {
  readonly live: KubeObject;
  /** What lowers its isolation. */
  readonly weakness: string;
  /** Why krane's template was refused. */
  readonly refusal?: unknown;
}

function heldReason(name: string, { weakness, refusal }: Omit<Weakened, "live">): string {
  // Somebody made it with another selector. No webhook is to blame, and only its deletion helps.
  if (isImmutable(refusal))
    return `${refusal.message}. It is less isolated than krane wrote it: ${weakness}. It gets no new pods. Delete it, and krane creates it again`;
  return `the cluster lowers the isolation of ${name} when krane writes it: ${weakness}. It gets no new pods. Look for a mutating webhook or admission policy`;
}

/** Recorded under another name or uid, an answer would mislead krane about that object. */
function isAnswerAbout({ metadata }: KubeObject, ref: ObjectRef, live: LiveEntry | undefined): boolean {
  const { name, namespace, uid = "" } = metadata ?? {};
  if (name !== ref.name || namespace !== ref.namespace) return false;
  return live === undefined ? uid !== "" : uid === live.uid;
}

function untrueAnswer(name: string): KubeApiError {
  return new KubeApiError("malformed", `apply ${name}: the response is about another object`);
}

/** Merges what is left of several steps. */
export function applied(writes: number, ...rests: readonly Rest[]): WriteOutcome {
  const left = rests.flatMap((rest) => rest.left || []).join("; ");
  const sealAfterMs = Math.max(0, ...rests.map((rest) => rest.sealAfterMs ?? 0));
  if (left === "" && sealAfterMs === 0) return { kind: "applied", writes };
  return { kind: "applied", writes, rest: { left, ...(sealAfterMs > 0 && { sealAfterMs }) } };
}

function describeLeft(name: string, fields: readonly DriftedField[]): string {
  if (fields.length === 0) return "";
  const unknown = fields.filter(({ isUnknownDefault }) => isUnknownDefault);
  const kept = fields.filter(({ isUnknownDefault }) => !isUnknownDefault);
  const parts = [
    ...(kept.length > 0
      ? [`the cluster sets these fields of ${name} whatever krane writes: ${describeDrift(kept)}`]
      : []),
    ...(unknown.length > 0
      ? [`${name} has fields that this krane does not know and leaves alone: ${describeDrift(unknown)}`]
      : []),
  ];
  return parts.join("; ");
}

/** What sealing an object takes. */
interface SealedObject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  ids(): SealedIds;
  manifest(): KubeObject;
}

/** Sealed with the current key. */
export function isSealed(ownership: Ownership): boolean {
  return ownership.kind === "ours" && !ownership.isOutdated;
}

/** Some webhooks refuse dry runs. */
function ignoreRefusal(error: unknown): undefined {
  if (!isRefusal(error)) throw error;
  return undefined;
}

export function nameOf({ kind, ref }: Pick<OwnedObject, "kind" | "ref">): string {
  return `${kind.kind} ${objectKey(ref)}`;
}
