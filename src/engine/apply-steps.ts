// Carries out the steps of a plan: the only code that writes desired state into the cluster.
//
// - An object whose live content is as wanted costs no call, also right after a start (K11).
// - force is used only on an object that is known to be krane's own, and names its uid, so that it can
//   never hit another one. Where nothing is known, the name is looked up first, and nothing is forced. It
//   is not looked up where nothing can be known: in a namespace that krane has just made, for a manifest that
//   the server refuses to apply onto anybody else's object.
// - What is not krane's, or stands for another id, is never touched (K4).
// - A namespace that vanishes between two steps is made again, and the plan begins anew.
import type { Clock } from "../concurrency/clock.ts";
import type { KubeApi, ReplaceOperation } from "../kube/api.ts";
import { objectKey } from "../kube/object-cache.ts";
import { namespaces } from "../kube/resources.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "../model/labels.ts";
import type { Ownership } from "../model/ownership.ts";
import { lastOtherManager } from "./applied-content.ts";
import { saysConflict, saysInvalid, saysNo, saysNothingThere } from "./classify.ts";
import type { DriftMemory } from "./drift-memory.ts";
import { KnownNamespaces } from "./known-namespaces.ts";
import type { CheckedObject, LiveEntry, OwnedObject, Step } from "./plan.ts";
import type { SlowLane } from "./slow-lane.ts";

export type StepsOutcome =
  | { readonly kind: "applied"; readonly writes: number }
  /** Another key has to be in order first. */
  | { readonly kind: "waiting"; readonly key: string }
  /** The name belongs to somebody else. */
  | { readonly kind: "conflict"; readonly reason: string }
  /** The object of before is still on its way out. */
  | { readonly kind: "deleting"; readonly reason: string }
  /** Somebody keeps changing it. */
  | { readonly kind: "contested"; readonly reason: string; readonly waitMs: number }
  /** The rest cannot be done while this is so. */
  | { readonly kind: "unmet"; readonly reason: string }
  /** A known obstacle; nothing was tried. */
  | { readonly kind: "backing-off"; readonly reason: string; readonly waitMs: number };

export interface ApplyDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly drift: DriftMemory;
  readonly lane: SlowLane;
}

/** What was being done when a call failed: kind and namespace. */
export interface Progress {
  scope: string;
}

// An object that is only checked is looked at again after this long, should somebody have removed it.
const checkAgainMs = 600_000;
const checkedMax = 10_000;

// By default a server reads a manifest twice, the second time to warn of fields that it does not know: a tenth of
// what an apply costs it. Nobody here would see the warning. A built-in kind refuses such a field in any case, and
// the tests send every manifest with "Strict".
const applyOptions = { fieldManager, fieldValidation: "Ignore" } as const;

export class StepsApplier {
  private readonly deps: ApplyDeps;
  private readonly spaces: KnownNamespaces;
  private readonly checkedUntilMs = new Map<string, number>();

  constructor(deps: ApplyDeps) {
    this.deps = deps;
    this.spaces = new KnownNamespaces(deps);
  }

  /** Whether there is nothing to do, as far as can be said without asking anybody. */
  isDone(steps: readonly Step[]): boolean {
    return steps.every((step) => this.isStepDone(step));
  }

  async apply(steps: readonly Step[], progress: Progress, signal: AbortSignal): Promise<StepsOutcome> {
    try {
      // What lives in a namespace proves it, so that a restart need not try to create any.
      for (const step of steps)
        if (step.kind === "object" && step.object.live() !== undefined) this.noteNamespace(step.object.ref);
      return await this.run(steps, progress, signal);
    } catch (error) {
      if (!saysNothingThere(error)) throw error;
      // Whatever is known about the namespaces of these steps may be wrong now.
      for (const step of steps) if (step.kind === "namespace") this.forgetNamespace(step.name);
      return await this.run(steps, progress, signal);
    }
  }

  private async run(steps: readonly Step[], progress: Progress, signal: AbortSignal): Promise<StepsOutcome> {
    let writes = 0;
    let isNewNamespace = false;
    for (const step of steps) {
      if (step.kind === "await") {
        // Whatever was seen in a namespace that had to be made is not there any more.
        if (step.isReady && !isNewNamespace) continue;
        return { kind: "waiting", key: step.key };
      }
      const outcome = await this.runStep(step, progress, signal);
      if (outcome.kind !== "applied") return outcome;
      writes += outcome.writes;
      isNewNamespace ||= step.kind === "namespace" && outcome.writes > 0;
    }
    return { kind: "applied", writes };
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

  /** The first trouble is that of all; it is told when every step has had its turn. */
  private async runEach(
    steps: readonly Step[],
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    let writes = 0;
    let trouble: { readonly scope: string; tell(): StepsOutcome } | undefined;
    for (const step of steps) {
      try {
        const outcome = await this.run([step], progress, signal);
        if (outcome.kind === "applied") writes += outcome.writes;
        else trouble ??= { scope: progress.scope, tell: () => outcome };
      } catch (error) {
        // A server that cannot be reached would be waited for once per step.
        if (!saysNo(error)) throw error;
        trouble ??= {
          scope: progress.scope,
          tell: () => {
            throw error;
          },
        };
      }
    }
    if (trouble === undefined) return applied(writes);
    progress.scope = trouble.scope;
    return trouble.tell();
  }

  /** Created where it is missing, used as it is where it exists. */
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
        return this.stands(step.object);
      case "checked":
        return this.isChecked(step.object);
      case "each":
        return this.isDone(step.steps());
      case "unmet":
        return false;
    }
  }

  private stands(object: OwnedObject): boolean {
    const live = object.live();
    if (live === undefined || live.deleting || live.ownership.kind !== "ours") return false;
    return this.isAsWanted(object, object.contentHash, live);
  }

  /** The hash is handed in, because it may cost something to make. */
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
      if (this.isAsWanted(object, contentHash, cached)) return applied(0);
      const waitMs = this.deps.drift.pauseMs(name, contentHash);
      if (waitMs > 0) return this.contested(object, name, waitMs, signal);
    }
    const held = this.enter(kind, ref, progress);
    if (held) return held;
    const live = cached ?? (this.isSurelyNew(object, name) ? undefined : await this.lookUp(object, signal));
    const verdict = live && judge(name, live);
    if (verdict) return verdict;
    const stored = object.wrote(await this.send(object, live, signal));
    this.deps.drift.wrote(name, contentHash, stored.contentHash);
    this.noteNamespace(ref);
    return applied(1);
  }

  private async send(
    object: OwnedObject,
    live: LiveEntry | undefined,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { kind, ref } = object;
    const manifest = live === undefined ? object.manifest() : withUid(object.manifest(), live.uid);
    const options = { ...applyOptions, force: live !== undefined };
    try {
      return (await this.deps.api.apply(kind, manifest, options, signal)).object;
    } catch (error) {
      // Somebody was faster. From now on names are looked up in that namespace, before the next attempt too.
      if (saysConflict(error) && ref.namespace !== undefined) this.spaces.age(ref.namespace);
      const isRepaired =
        live !== undefined && saysInvalid(error) && (await this.moveBack(object, live.uid, signal));
      if (!isRepaired) throw error;
      return (await this.deps.api.apply(kind, manifest, options, signal)).object;
    }
  }

  /** Undoes what an apply cannot; false where there is nothing of the kind. */
  private async moveBack(object: OwnedObject, uid: string, signal: AbortSignal): Promise<boolean> {
    const { kind, ref } = object;
    const manifest = object.manifest();
    const found = await this.deps.api.get(kind, ref, {}, signal);
    if (found?.metadata?.uid !== uid) return false;
    // The server took this very manifest before, so what is wrong came by hand. One that it never took may be
    // wrong in itself, and no part of it is to get in past the refusal; but for an object that was moved back
    // before, where the patch of that time keeps the key of before alive.
    const isKnown = manifestHashOf(found) === manifestHashOf(manifest) || wasPatched(found);
    if (!isKnown) return false;
    const operations = findMovedItems(manifest, found);
    if (operations.length === 0) return false;
    await this.deps.api.patch(kind, found, operations, { fieldManager }, signal);
    return true;
  }

  /** What krane wrote before may have been taken out of its hands since, so it is never surely new again. */
  private isSurelyNew({ ref, refusesStrangers }: OwnedObject, name: string): boolean {
    const isNewPlace = ref.namespace !== undefined && this.spaces.isNew(ref.namespace);
    return refusesStrangers && isNewPlace && !this.deps.drift.knows(name);
  }

  /** The cache shows krane's objects by their labels; one that lost its labels, or a stranger's, only a look shows. */
  private async lookUp(object: OwnedObject, signal: AbortSignal): Promise<LiveEntry | undefined> {
    const found = await this.deps.api.get(object.kind, object.ref, { resourceVersion: "0" }, signal);
    return found && object.entryOf(found);
  }

  private async contested(
    { kind, ref }: OwnedObject,
    name: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const found = await this.deps.api.get(kind, ref, { resourceVersion: "0", detail: "metadata" }, signal);
    const manager = lastOtherManager(found?.metadata) ?? "unknown";
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
    if (ownership !== undefined && ownership.kind !== "ours") return conflict(name, ownership);
    const isCurrent = live !== undefined && object.isCurrent(live);
    if (!isCurrent) {
      const uid = live?.metadata?.uid;
      const manifest = uid === undefined ? object.manifest() : withUid(object.manifest(), uid);
      await this.deps.api.apply(
        kind,
        manifest,
        { ...applyOptions, force: live !== undefined, detail: "metadata" },
        signal,
      );
    }
    if (this.checkedUntilMs.size >= checkedMax) this.checkedUntilMs.clear();
    this.checkedUntilMs.set(name, this.deps.clock.nowMs() + checkAgainMs);
    return applied(isCurrent ? 0 : 1);
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
  if (live.ownership.kind !== "ours") return conflict(name, live.ownership);
  return live.deleting ? { kind: "deleting", reason: `${name} of before is still being deleted` } : undefined;
}

function conflict(name: string, ownership: Exclude<Ownership, { kind: "ours" }>): StepsOutcome {
  const what = ownership.kind === "foreign" ? "is not krane's" : "belongs to another id";
  return { kind: "conflict", reason: `${name} ${what}: ${ownership.reason}` };
}

function applied(writes: number): StepsOutcome {
  return { kind: "applied", writes };
}

function withUid<T extends KubeObject>(manifest: T, uid: string): T {
  return { ...manifest, metadata: { ...manifest.metadata, uid } };
}

function wasPatched({ metadata }: KubeObject): boolean {
  return (metadata?.managedFields ?? []).some(
    ({ manager, operation, subresource }) =>
      manager === fieldManager && operation === "Update" && !subresource,
  );
}

function manifestHashOf({ metadata }: KubeObject): string | undefined {
  return metadata?.annotations?.[annotationKeys.manifestHash];
}

function nameOf({ kind, ref }: Pick<OwnedObject, "kind" | "ref">): string {
  return `${kind.kind} ${objectKey(ref)}`;
}

// Items of lists that somebody gave another key, and the patch that gives them their own back.
//
// The items of most lists are known by a key: a port of a Service by its number. Who edits that number
// makes another item of it in the eyes of server-side apply. krane's own would be put beside it, and the
// server refuses two ports of one name, so no apply can undo such an edit. A patch can, because it names
// the place and not the key.

type Json = Readonly<Record<string, unknown>>;

/** What to replace in the live object's lists; nothing outside of lists, which an apply puts right by itself. */
export function findMovedItems(manifest: KubeObject, live: KubeObject): ReplaceOperation[] {
  return inObject(manifest as Json, live as Json, "", false);
}

function inObject(wanted: Json, live: Json, path: string, isItem: boolean): ReplaceOperation[] {
  return Object.entries(wanted).flatMap(([name, value]) => {
    const found = live[name];
    const place = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (Array.isArray(value)) return Array.isArray(found) ? inList(value, found, place) : [];
    if (isRecord(value)) return isRecord(found) ? inObject(value, found, place, isItem) : [];
    // What is not there at all, an apply adds.
    const isMoved = isItem && found !== undefined && found !== value;
    return isMoved ? [{ op: "replace" as const, path: place, value }] : [];
  });
}

function inList(wanted: readonly unknown[], live: readonly unknown[], path: string): ReplaceOperation[] {
  return wanted.flatMap((item, index) => {
    if (!isRecord(item)) return [];
    const at = placeOf(item, index, wanted.length, live);
    const found = live[at];
    return isRecord(found) ? inObject(item, found, `${path}/${at}`, true) : [];
  });
}

/** By its name where it has one; by its place only in a list as long as krane's own. */
function placeOf(item: Json, index: number, count: number, live: readonly unknown[]): number {
  const { name } = item;
  if (name !== undefined) return live.findIndex((other) => isRecord(other) && other["name"] === name);
  return live.length === count ? index : -1;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
