// Executes the steps of a plan: the only code that writes desired state to the cluster.
//
// - An object whose live content matches costs no request, also right after a start (K11).
// - force is used only on an object known to be krane's, together with its uid, so it can never hit another object.
//   An object that the cache does not show is looked up by name first and applied without force. The lookup is
//   skipped only in a namespace that krane has just created, for a manifest that the server would refuse to apply
//   over an object of somebody else.
// - An object that is not krane's, or belongs to another id, is never touched (K4).
// - If a namespace vanishes between two steps, it is created again and the plan starts over.
import type { Clock } from "../concurrency/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import { objectKey } from "../kube/object-cache.ts";
import { namespaces } from "../kube/resources.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "../model/labels.ts";
import { isClaimable, type Ownership, type Stranger } from "../model/ownership.ts";
import type { Seal, SealedIds } from "../model/seal.ts";
import type { ActionRecords, BeforeWrite, WrittenObject } from "./action-records.ts";
import { appliedPart } from "./applied-content.ts";
import { isConflict, isNotFound, isRefusal } from "./classify.ts";
import type { DriftMemory } from "./drift-memory.ts";
import { DriftRepair, manifestHashOf, type Repair } from "./drift-repair.ts";
import { type DriftedField, describeDrift } from "./drifted-fields.ts";
import { lastChangerOf } from "./field-owners.ts";
import { KnownNamespaces } from "./known-namespaces.ts";
import type { CheckedObject, LiveEntry, OwnedObject, Step } from "./plan.ts";
import { SealPace } from "./seal-pace.ts";
import type { SlowLane } from "./slow-lane.ts";

export type StepsOutcome =
  | { readonly kind: "applied"; readonly writes: number; readonly rest?: Rest }
  /** The cluster lowers the isolation of its pods, so it gets no new ones. */
  | { readonly kind: "held"; readonly reason: string }
  /** Another key has to be in sync first. */
  | { readonly kind: "waiting"; readonly key: string }
  /** The name is taken by an object that is not krane's, or has another id. */
  | { readonly kind: "conflict"; readonly reason: string }
  /** The previous object is still being deleted. */
  | { readonly kind: "deleting"; readonly reason: string }
  /** Another field manager keeps changing it. */
  | { readonly kind: "contested"; readonly reason: string; readonly waitMs: number }
  /** A precondition is not met, and the remaining steps need it. */
  | { readonly kind: "unmet"; readonly reason: string }
  /** Waiting out the shared back-off of a known obstacle; nothing was tried. */
  | { readonly kind: "backing-off"; readonly reason: string; readonly waitMs: number };

/** What an apply leaves. */
export interface Rest {
  /** What still differs because the cluster itself changes it, for people. */
  readonly left: string;
  /** The content is right, and what is left is to seal it, after this long. */
  readonly sealAfterMs?: number;
}

export interface ApplyDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly drift: DriftMemory;
  readonly lane: SlowLane;
  readonly seal: Seal;
  /** Called after each repair. */
  onRepair?(repair: Repair): void;
  readonly actions: ActionRecords;
}

interface FoundDrift {
  readonly object: KubeObject;
  readonly needsApply: boolean;
  /** What lowers its isolation, whatever krane writes. */
  readonly weakness?: string;
}

export interface Progress {
  /** The key that is reconciled. */
  readonly key?: string;
  /** What was being written when a request failed: kind and namespace. */
  scope: string;
}

// How long a check of an unwatched object counts; then it is read again, in case somebody removed it.
const checkAgainMs = 600_000;
const checkedMax = 10_000;

// By default the server decodes a manifest twice, the second time to warn about unknown fields: a tenth of what an
// apply costs it, and krane does not read warnings. Built-in kinds reject unknown fields in any case, and the tests
// send every manifest with "Strict".
const applyOptions = { fieldManager, fieldValidation: "Ignore" } as const;

export class StepsApplier {
  private readonly deps: ApplyDeps;
  private readonly spaces: KnownNamespaces;
  private readonly sealPace: SealPace;
  private readonly repair: DriftRepair;
  private readonly checkedUntilMs = new Map<string, number>();

  constructor(deps: ApplyDeps) {
    this.deps = deps;
    this.spaces = new KnownNamespaces(deps);
    this.sealPace = new SealPace(deps.clock);
    this.repair = new DriftRepair({ api: deps.api, onRepair: (repair) => deps.onRepair?.(repair) });
  }

  /** Whether there is nothing to do, as far as the caches show. */
  isDone(steps: readonly Step[]): boolean {
    return steps.every((step) => this.isStepDone(step));
  }

  async apply(steps: readonly Step[], progress: Progress, signal: AbortSignal): Promise<StepsOutcome> {
    try {
      // A live object proves its namespace, so krane need not try to create the namespaces after a restart.
      for (const step of steps)
        if (step.kind === "object" && step.object.live() !== undefined) this.noteNamespace(step.object.ref);
      return await this.run(steps, progress, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // One of the namespaces may have been deleted meanwhile.
      for (const step of steps) if (step.kind === "namespace") this.forgetNamespace(step.name);
      return await this.run(steps, progress, signal);
    }
  }

  private async run(steps: readonly Step[], progress: Progress, signal: AbortSignal): Promise<StepsOutcome> {
    let writes = 0;
    const rests: Rest[] = [];
    let isNewNamespace = false;
    for (const step of steps) {
      if (step.kind === "await") {
        // If the namespace had to be created, what the cache showed in it is gone.
        if (step.isReady && !isNewNamespace) continue;
        return { kind: "waiting", key: step.key };
      }
      const outcome = await this.runStep(step, progress, signal);
      if (outcome.kind !== "applied") return outcome;
      writes += outcome.writes;
      if (outcome.rest !== undefined) rests.push(outcome.rest);
      isNewNamespace ||= step.kind === "namespace" && outcome.writes > 0;
    }
    return applied(writes, ...rests);
  }

  private runStep(
    step: Exclude<Step, { kind: "await" }>,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    switch (step.kind) {
      case "namespace":
        return this.ensureNamespace(step.name, progress, signal);
      case "object":
        return this.applyOwned(step.object, progress, signal);
      case "checked":
        return this.applyChecked(step.object, progress, signal);
      case "each":
        return this.runEach(step.steps(), progress, signal);
      case "unmet":
        return Promise.resolve(step);
    }
  }

  /** Runs every step, then returns or throws the first failure. */
  private async runEach(
    steps: readonly Step[],
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    let writes = 0;
    const rests: Rest[] = [];
    let failure: { readonly scope: string; conclude(): StepsOutcome } | undefined;
    for (const step of steps) {
      try {
        const outcome = await this.run([step], progress, signal);
        if (outcome.kind === "applied") {
          writes += outcome.writes;
          if (outcome.rest !== undefined) rests.push(outcome.rest);
        } else failure ??= { scope: progress.scope, conclude: () => outcome };
      } catch (error) {
        // If the server is unreachable, the other steps would each wait for their timeout.
        if (!isRefusal(error)) throw error;
        failure ??= {
          scope: progress.scope,
          conclude: () => {
            throw error;
          },
        };
      }
    }
    if (failure === undefined) return applied(writes, ...rests);
    progress.scope = failure.scope;
    return failure.conclude();
  }

  /** Creates the namespace if it is missing; an existing one is used as it is. */
  private async ensureNamespace(
    name: string,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    if (this.spaces.has(name)) return applied(0);
    const held = this.enter(namespaces, { name }, progress);
    return held ?? applied(await this.spaces.ensure(name, signal));
  }

  private isStepDone(step: Step): boolean {
    switch (step.kind) {
      case "namespace":
        return this.spaces.has(step.name);
      case "await":
        return step.isReady;
      case "object":
        return this.isObjectDone(step.object);
      case "checked":
        return this.isChecked(step.object);
      case "each":
        return this.isDone(step.steps());
      case "unmet":
        return false;
    }
  }

  private isObjectDone(object: OwnedObject): boolean {
    const live = object.live();
    if (live === undefined || live.deleting || !isSealed(live.ownership)) return false;
    return this.isAsWanted(object, object.contentHash, live);
  }

  /** The hash is a parameter because computing it may be expensive. */
  private isAsWanted(object: OwnedObject, contentHash: string, live: LiveEntry): boolean {
    if (live.contentHash === contentHash) return true;
    return this.deps.drift.isAsStored(nameOf(object), contentHash, live.contentHash);
  }

  private async applyOwned(
    object: OwnedObject,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const { kind, ref, contentHash } = object;
    const name = nameOf(object);
    const cached = object.live();
    if (cached !== undefined) {
      const verdict = judge(name, cached);
      if (verdict) return verdict;
      this.noteNamespace(ref);
      if (this.isAsWanted(object, contentHash, cached)) {
        const left = this.deps.drift.leftOf(name, contentHash);
        if (isSealed(cached.ownership)) return applied(0, { left });
        const sealAfterMs = this.sealPace.waitMs(name);
        if (sealAfterMs > 0) return applied(0, { left, sealAfterMs });
      }
      const waitMs = this.deps.drift.pauseMs(name, contentHash);
      if (waitMs > 0) return this.contested(object, name, waitMs, signal);
    }
    const held = this.enter(kind, ref, progress);
    if (held) return held;
    const live = cached ?? (this.isSurelyNew(object, name) ? undefined : await this.lookUp(object, signal));
    const verdict = live && judge(name, live);
    if (verdict) return verdict;
    const outcome = await this.write(object, name, live, progress, signal);
    this.sealPace.forget(name);
    this.noteNamespace(ref);
    return outcome;
  }

  /** Applies the object if need be, and undoes what the apply left. */
  private async write(
    object: OwnedObject,
    name: string,
    live: LiveEntry | undefined,
    { key }: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const { kind, ref, contentHash } = object;
    const { drift, actions } = this.deps;
    const subject = { kind, ref, uid: live?.uid ?? "" };
    const written = { key, subject, manifest: () => object.manifest() };
    // What is not sealed is applied in any case.
    const found =
      live && isSealed(live.ownership) ? await this.findDrift(object, name, live, signal) : undefined;
    if (found?.weakness) return this.hold(object, name, found.object, found.weakness, signal);
    const before: BeforeWrite = found
      ? { kind: "drifted", object: found.object }
      : await actions.beforeWrite(written, drift.wasSent(name, contentHash), signal);
    let current = found?.object;
    let writes = 0;
    if (current === undefined || found?.needsApply) {
      current = await this.send(object, live, signal);
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
    if (weakness !== "") return this.hold(object, name, cleaned.live, weakness, signal);
    const stored = object.hashOf(cleaned.live);
    const left = describeLeft(name, cleaned.left);
    if (writes > 0) drift.wrote(name, contentHash, stored, left);
    else drift.saw(name, contentHash, stored, left);
    return applied(writes, { left });
  }

  /** Keeps an object whose template the cluster weakens from getting new pods. */
  private async hold(
    object: OwnedObject,
    name: string,
    live: KubeObject,
    weakness: string,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const held = await this.repair.limitReplicas(object, live, signal);
    const reason = `the cluster lowers the isolation of ${name} when krane writes it: ${weakness}. It gets no new pods. Look for a mutating webhook or admission policy`;
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
    return { object: found, needsApply: object.hashOf(outlook) !== hash, weakness };
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
      // Another client writes to this namespace too: from now on, names in it are looked up before an apply.
      if (isConflict(error) && ref.namespace !== undefined) this.spaces.age(ref.namespace);
      if (live === undefined) throw error;
      return this.repair.applyAfter(error, object, live.uid, apply, signal);
    }
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

  /** An object that this process wrote before may have lost its labels since, so it is never surely new. */
  private isSurelyNew({ ref, refusesStrangers }: OwnedObject, name: string): boolean {
    const isNewPlace = ref.namespace !== undefined && this.spaces.isNew(ref.namespace);
    return refusesStrangers && isNewPlace && !this.deps.drift.knows(name);
  }

  /** The cache selects by krane's labels. Objects without them can only be found by name. */
  private async lookUp(object: OwnedObject, signal: AbortSignal): Promise<LiveEntry | undefined> {
    const found = await this.deps.api.get(object.kind, object.ref, { resourceVersion: "0" }, signal);
    return found && object.entryOf(found);
  }

  private async contested(
    object: OwnedObject,
    name: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const found = await this.deps.api.get(object.kind, object.ref, { resourceVersion: "0" }, signal);
    const manager = (found && lastChangerOf(found, object.manifest())) ?? "unknown";
    return { kind: "contested", reason: `field manager ${manager} keeps changing ${name}`, waitMs };
  }

  private isChecked(object: CheckedObject): boolean {
    return (this.checkedUntilMs.get(nameOf(object)) ?? 0) > this.deps.clock.nowMs();
  }

  private async applyChecked(
    object: CheckedObject,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const { kind, ref } = object;
    const name = nameOf(object);
    if (this.isChecked(object)) return applied(0);
    const held = this.enter(kind, ref, progress);
    if (held) return held;
    const live = await this.deps.api.get(kind, ref, {}, signal);
    const ownership = live && object.judge(live);
    if (ownership !== undefined && !isClaimable(ownership)) return conflict(name, ownership);
    const isCurrent =
      live !== undefined && ownership !== undefined && isSealed(ownership) && object.isCurrent(live);
    if (!isCurrent) await this.sendChecked(object, live, progress, signal);
    if (this.checkedUntilMs.size >= checkedMax) this.checkedUntilMs.clear();
    this.checkedUntilMs.set(name, this.deps.clock.nowMs() + checkAgainMs);
    return applied(isCurrent ? 0 : 1);
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

  private async sendChecked(
    object: CheckedObject,
    live: KubeObject | undefined,
    { key }: Progress,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, actions } = this.deps;
    const { kind, ref } = object;
    const uid = live?.metadata?.uid ?? "";
    const manifest = this.sealed(object, live && { uid, ownership: object.judge(live) });
    const options = { ...applyOptions, force: live !== undefined, detail: "metadata" } as const;
    const { object: stored } = await api.apply(kind, manifest, options, signal);
    const subject = { kind, ref, uid };
    const wasThere = this.checkedUntilMs.has(nameOf({ kind, ref }));
    const before = actions.judgeRead(live, manifest, wasThere);
    // The response has the metadata only; the rest is stored as it was sent.
    const after = { ...manifest, ...(stored.metadata && { metadata: stored.metadata }) };
    actions.recordWrite({ key, subject, manifest: () => manifest }, before, after);
  }

  private enter(kind: ResourceKind, ref: ObjectRef, progress: Progress): StepsOutcome | undefined {
    progress.scope = `${kind.kind}/${ref.namespace ?? ""}`;
    const wait = this.deps.lane.wait(progress.scope);
    return wait && { kind: "backing-off", ...wait };
  }

  private noteNamespace({ namespace }: ObjectRef): void {
    if (namespace !== undefined) this.spaces.note(namespace);
  }

  private forgetNamespace(name: string): void {
    this.spaces.forget(name);
    for (const checked of this.checkedUntilMs.keys())
      if (checked.includes(` ${name}/`)) this.checkedUntilMs.delete(checked);
  }
}

function judge(name: string, live: LiveEntry): StepsOutcome | undefined {
  if (!isClaimable(live.ownership)) return conflict(name, live.ownership);
  return live.deleting
    ? { kind: "deleting", reason: `the previous ${name} is still being deleted` }
    : undefined;
}

function conflict(name: string, ownership: Stranger): StepsOutcome {
  const what = ownership.kind === "foreign" ? "is not krane's" : "belongs to another id";
  return { kind: "conflict", reason: `${name} ${what}: ${ownership.reason}` };
}

/** Merges what is left of several steps. */
function applied(writes: number, ...rests: readonly Rest[]): StepsOutcome {
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
function isSealed(ownership: Ownership): boolean {
  return ownership.kind === "ours" && !ownership.isOutdated;
}

/** Some webhooks refuse dry runs. */
function ignoreRefusal(error: unknown): undefined {
  if (!isRefusal(error)) throw error;
  return undefined;
}

function nameOf({ kind, ref }: Pick<OwnedObject, "kind" | "ref">): string {
  return `${kind.kind} ${objectKey(ref)}`;
}
