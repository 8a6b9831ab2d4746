// Edits every field of what krane writes, and many that it does not send, in every way that a user of the cluster can,
// and checks that krane undoes each edit, names it and its writer, and then writes nothing more. On any API server:
// the embedded one and the real one.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { manifestContentHash } from "../../src/engine/applied-content.ts";
import { createProgress, StepsApplier, type StepsOutcome } from "../../src/engine/apply-steps.ts";
import { backoffs, isConflict } from "../../src/engine/classify.ts";
import { Contests } from "../../src/engine/contests.ts";
import { DriftMemory } from "../../src/engine/drift-memory.ts";
import type { Repair } from "../../src/engine/drift-repair.ts";
import type { ObjectEvent } from "../../src/engine/object-events.ts";
import { type LiveProjection, ownedObject } from "../../src/engine/plan.ts";
import { SlowLane } from "../../src/engine/slow-lane.ts";
import { WatchedKind } from "../../src/engine/watched-kind.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createKubeApi, objectPath } from "../../src/kube/client.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { createActionRecords } from "./action-records.ts";
import { handEdits } from "./hand-edits.ts";
import type { MutatingWebhook } from "./mutating-webhook.ts";
import { createQuietLog } from "./quiet-log.ts";
import { oursSealed, testSeal } from "./test-seal.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Runs krane's own engine on one object: without a control plane and a watch, so that every write is counted. */
export class DriftTrial {
  readonly kind: ResourceKind;
  readonly manifest: KubeObject;
  readonly repairs: Repair[] = [];
  readonly events: ObjectEvent[] = [];
  /** What the last reconcile came to. */
  outcome: StepsOutcome | undefined;
  private readonly weaknessOf: (object: KubeObject) => string;
  private writes = 0;
  private readonly others: KubeTransport;
  private readonly api: KubeApi;
  private readonly watched: WatchedKind<KubeObject, LiveProjection>;
  private applier: StepsApplier;
  private readonly signal: AbortSignal;

  constructor(
    kind: ResourceKind,
    manifest: KubeObject,
    { krane, others }: { readonly krane: KubeTransport; readonly others: KubeTransport },
    signal: AbortSignal,
    weaknessOf: (object: KubeObject) => string = () => "",
  ) {
    this.kind = kind;
    this.manifest = manifest;
    this.others = others;
    this.signal = signal;
    this.weaknessOf = weaknessOf;
    this.api = createKubeApi(krane);
    const options = { kind, selection: {}, project, owned: true, required: true };
    const deps = { api: this.api, clock: createSystemClock(), random: createSeededRandom(1) };
    this.watched = new WatchedKind(options, { ...deps, seal: testSeal, onError: () => undefined });
    this.applier = this.createApplier();
  }

  isWeak(object: KubeObject): boolean {
    return this.weaknessOf(object) !== "";
  }

  get ref() {
    return { namespace: this.manifest.metadata?.namespace ?? "", name: this.manifest.metadata?.name ?? "" };
  }

  async live(): Promise<KubeObject> {
    return (await this.api.get(this.kind, this.ref, {}, this.signal)) ?? assert.fail("it is gone");
  }

  /** As after a restart of krane: it remembers nothing. */
  restart(): void {
    this.applier = this.createApplier();
  }

  /** Reconciles what is live, again after a conflict, as krane's queue does; returns how many writes that took. */
  async reconcile(manifest = this.manifest): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.reconcileOnce(manifest);
      } catch (error) {
        if (!isConflict(error) || attempt === 10) throw error;
      }
    }
  }

  private async reconcileOnce(manifest: KubeObject): Promise<number> {
    const found = await this.api.get(this.kind, this.ref, {}, this.signal);
    if (found !== undefined) this.watched.cache.put(this.watched.entryOf(found));
    this.writes = 0;
    const object = ownedObject(this.watched, {
      key: `${this.ref.namespace}/${this.ref.name}`,
      ref: this.ref,
      contentHash: () => manifestContentHash(manifest),
      ids: () => ({}),
      manifest: () => manifest,
      judge: ({ ownership }) => ownership,
      weaknessOf: this.weaknessOf,
    });
    this.outcome = await this.applier.apply(
      [{ kind: "object", object }],
      createProgress(`${this.ref.namespace}/${this.ref.name}`),
      this.signal,
    );
    return this.writes;
  }

  /** Writes as a user of the cluster does; returns false if the server refuses it. */
  async write(
    method: "PUT" | "PATCH",
    contentType: string,
    body: unknown,
    fieldManager: string,
  ): Promise<boolean> {
    const query = { fieldManager, ...(contentType === applyPatch && { force: "true" }) };
    const path = objectPath(this.kind, this.ref);
    const request = { method, path, query, contentType, accept: "application/json", body } as const;
    return (await this.others.send(request, this.signal)).status < 300;
  }

  private createApplier(): StepsApplier {
    const clock = createSystemClock();
    const random = createSeededRandom(1);
    const api = this.countingApi();
    return new StepsApplier({
      api,
      actions: createActionRecords(api, this.events),
      clock,
      drift: new DriftMemory(),
      contests: new PatientContests({ controller: "drift", api, clock, log: createQuietLog() }),
      lane: new SlowLane(backoffs.slow, { clock, random }),
      seal: testSeal,
      onRepair: (repair) => this.repairs.push(repair),
    });
  }

  private countingApi(): KubeApi {
    const { api } = this;
    // A write that the server refuses, because something else wrote at the same time, changes nothing.
    const counted = async <T>(dryRun: boolean | undefined, write: Promise<T>): Promise<T> => {
      const result = await write;
      if (!dryRun) this.writes += 1;
      return result;
    };
    return {
      ...api,
      apply: (kind, manifest, options, signal) =>
        counted(options.dryRun, api.apply(kind, manifest, options, signal)),
      patch: (kind, object, operations, options, signal) =>
        counted(options.dryRun, api.patch(kind, object, operations, options, signal)),
      delete: () => assert.fail("nothing is deleted"),
    };
  }
}

/** Edits come faster here than a fight does. */
class PatientContests extends Contests {
  override async check(): Promise<undefined> {
    return undefined;
  }
}

function project({ metadata }: KubeObject): LiveProjection {
  return {
    ownership: oursSealed,
    deleting: false,
    createdAt: metadata?.creationTimestamp,
    manifestHash: metadata?.annotations?.[annotationKeys.manifestHash],
  };
}

const applyPatch = "application/apply-patch+yaml";

interface Attack {
  readonly name: string;
  /** Who it is blamed on. */
  readonly blamed: string;
  edit(trial: DriftTrial, part: Json): Promise<boolean>;
}

const merge = (kind: ResourceKind) =>
  kind.group.includes(".") ? "application/merge-patch+json" : "application/strategic-merge-patch+json";

const update = (manager: string): Attack => ({
  name: `updated by ${manager}`,
  blamed: manager,
  edit: (trial, part) => trial.write("PATCH", merge(trial.kind), part, manager),
});

const typed = ({ manifest: { apiVersion, kind, metadata } }: DriftTrial, part: Json): Json => ({
  apiVersion,
  kind,
  metadata: { name: metadata?.name, namespace: metadata?.namespace },
  ...part,
});

const attacks: readonly Attack[] = [
  update("kubectl-edit"),
  update("krane"),
  {
    name: "applied by someone",
    blamed: "someone",
    edit: (trial, part) => trial.write("PATCH", applyPatch, typed(trial, part), "someone"),
  },
  {
    name: "applied by krane",
    blamed: "krane",
    edit: (trial, part) =>
      trial.write("PATCH", applyPatch, merged(trial.manifest as unknown as Json, part), "krane"),
  },
];

/** All combinations take minutes, so `make test` takes one of each in turn. */
function sampleOf<T>(all: readonly T[], index: number): readonly T[] {
  return process.env["KRANE_TEST_LONG"] === "1" ? all : all.slice(index % all.length).slice(0, 1);
}

/** Adds each part in each way; returns how many of these edits the server accepted. */
export async function checkAdditions(trial: DriftTrial, parts: readonly Json[]): Promise<number> {
  await trial.reconcile();
  const clean = await trial.live();
  let accepted = 0;
  for (const [index, part] of parts.entries())
    for (const { name, blamed, edit } of sampleOf(attacks, index)) {
      const what = `${trial.kind.kind}: ${JSON.stringify(part)} ${name}`;
      if (!(await edit(trial, part)) || isSameContent(await trial.live(), clean)) continue;
      accepted += 1;
      await checkUndone(trial, clean, what, blamed);
    }
  return accepted;
}

/** Changes and removes each field that krane sends, but `except`; returns how many edits the server accepted. */
export async function checkEdits(trial: DriftTrial): Promise<number> {
  await trial.reconcile();
  const clean = await trial.live();
  const names = [...handEdits(trial.manifest, clean)].map(({ name }) => name);
  let accepted = 0;
  for (const [index, name] of names.entries())
    for (const manager of sampleOf(["kubectl-edit", "krane"], index)) {
      const edit = [...handEdits(trial.manifest, await trial.live())].find((one) => one.name === name);
      assert.ok(edit, `${name} cannot be made`);
      if (!(await trial.write("PUT", "application/json", edit.object, manager))) continue;
      if (isSameContent(await trial.live(), clean)) continue;
      accepted += 1;
      await checkUndone(trial, clean, `${trial.kind.kind}: ${name} by ${manager}`, undefined);
    }
  return accepted;
}

// All of them take minutes, so `make test` takes some of each kind.
const mutationsMax = 60;

/** What a webhook makes of an object, whoever writes it. */
interface Mutation {
  readonly name: string;
  /** Words of the path of the field, one of which people are told. */
  readonly words: readonly string[];
  specOf(object: KubeObject): unknown;
}

/** The parts added, and each field of the spec that krane sends changed and removed. */
function mutations(trial: DriftTrial, live: KubeObject, parts: readonly Json[]): readonly Mutation[] {
  const added = parts.map(
    (part): Mutation => ({
      name: `${JSON.stringify(part)} added`,
      words: [...JSON.stringify(part).matchAll(/"([^"]+)":/g)].map(([, word = ""]) => word).filter(isTelling),
      specOf: (object) => merged(specOf(object), specOf(part)),
    }),
  );
  const edits = [...handEdits(trial.manifest, live)].filter(({ path }) => path[0] === "spec");
  return [
    ...added,
    ...edits.map(({ name, path, object: { ...edited } }) => ({
      name,
      // The item of a list is told by its name.
      words: path.at(-1) === "name" ? [String(path.at(-3))] : path.map(String).filter(isTelling),
      specOf: () => specOf(edited),
    })),
  ];
}

const isTelling = (word: string) => !["spec", "template", "containers", "metadata"].includes(word);

function specOf(object: object): unknown {
  return (object as { readonly spec?: unknown }).spec;
}

/**
 * Has a webhook make each change to everything that is written, and lets somebody touch the object. krane must not fight it:
 * it says what differs, or holds the object if its isolation is lowered, and writes nothing more, also after a restart.
 * When the webhook is gone, a restart undoes the change. `administrator`: a krane that no policy restricts. Returns how many changes
 * the server accepted.
 */
export async function checkWebhook(
  agent: DriftTrial,
  administrator: DriftTrial,
  webhook: MutatingWebhook,
  parts: readonly Json[],
): Promise<number> {
  await agent.reconcile();
  const clean = await agent.live();
  let accepted = 0;
  const all = mutations(agent, clean, parts);
  const step = process.env["KRANE_TEST_LONG"] === "1" ? 1 : Math.ceil(all.length / mutationsMax);
  for (const { name, words, specOf } of all.filter((_, index) => index % step === 0)) {
    const what = `${agent.kind.kind}: ${name} by a webhook`;
    webhook.specOf = specOf;
    const isTouched = await touch(agent);
    if (isTouched && !isSameContent(await agent.live(), clean)) {
      accepted += 1;
      await checkLeft(agent, administrator, what, words);
    }
    webhook.specOf = undefined;
    // A process remembers that the server stored its own write like this, and does not ask again.
    agent.restart();
    await agent.reconcile();
    assert.deepEqual(contentOf(await agent.live()), contentOf(clean), `${what}: it stays after the webhook`);
  }
  return accepted;
}

/** As somebody who has nothing to do with krane. */
async function touch(trial: DriftTrial): Promise<boolean> {
  const { resourceVersion } = (await trial.live()).metadata ?? {};
  const metadata = { annotations: { touched: `after ${resourceVersion}` } };
  return trial.write("PATCH", "application/merge-patch+json", { metadata }, "kubectl-annotate");
}

async function checkLeft(
  agent: DriftTrial,
  administrator: DriftTrial,
  what: string,
  words: readonly string[],
): Promise<void> {
  const isRefused = await agent.reconcile().then(
    () => false,
    (error: unknown) => /ValidatingAdmissionPolicy/.test(String(error)),
  );
  const trial = isRefused ? administrator : agent;
  trial.restart();
  if (isRefused) await trial.reconcile();
  const left = await trial.live();
  for (const isRestart of [false, true]) {
    if (isRestart) trial.restart();
    assert.equal(
      await trial.reconcile(),
      0,
      `${what}: it is written again${isRestart ? " after a restart" : ""}`,
    );
    assert.deepEqual(contentOf(await trial.live()), contentOf(left), what);
    const { outcome } = trial;
    const told = JSON.stringify(outcome);
    const isHeld = trial.isWeak(left);
    assert.equal(outcome?.kind, isHeld ? "held" : "applied", `${what}: ${told}`);
    if (isHeld) assert.match(told, /lowers the isolation of .* Look for a mutating webhook/, what);
    else
      assert.ok(
        /the cluster sets these fields/.test(told) && words.some((word) => told.includes(word)),
        `${what}: ${told}`,
      );
  }
}

async function checkUndone(
  trial: DriftTrial,
  clean: KubeObject,
  what: string,
  blamed: string | undefined,
): Promise<void> {
  trial.repairs.length = 0;
  const writes = await trial.reconcile();
  assert.equal(trial.outcome?.kind, "applied", `${what}: ${JSON.stringify(trial.outcome)}`);
  assert.deepEqual(contentOf(await trial.live()), contentOf(clean), `${what}: it is not undone`);
  assert.ok(writes >= 1 && writes <= 3, `${what}: ${writes} writes`);
  const fields = trial.repairs.flatMap((repair) => repair.fields);
  // Without the hash of the manifest, it looks as if another one had been applied.
  const isRecognised = fields.length > 0 || what.includes("manifest-hash");
  assert.ok(isRecognised, `${what}: no repair is reported`);
  if (blamed !== undefined)
    assert.ok(
      fields.some(({ owner }) => owner?.manager === blamed),
      `${what}: blamed on ${JSON.stringify(fields.map(({ path, owner }) => [path, owner?.manager]))}`,
    );
  assert.equal(await trial.reconcile(), 0, `${what}: it is written again`);
  trial.restart();
  assert.equal(await trial.reconcile(), 0, `${what}: it is written again after a restart`);
}

function isSameContent(one: KubeObject, other: KubeObject): boolean {
  return isDeepStrictEqual(contentOf(one), contentOf(other));
}

/** What krane vouches for: the whole spec, and its labels and owners. */
function contentOf(object: KubeObject): unknown {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: unknown };
  const { labels, annotations, ownerReferences } = metadata ?? {};
  return { ...rest, labels, annotations: ownAnnotations(annotations), ownerReferences };
}

/** The controllers of Kubernetes annotate apps/v1 Deployments. */
function ownAnnotations(annotations: Readonly<Record<string, string>> = {}): Json {
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => name.startsWith("krane.")));
}

/** The manifest with the part in it; items of lists are matched by name. */
function merged(base: unknown, part: unknown): unknown {
  if (Array.isArray(base) && Array.isArray(part)) {
    const kept = base.map((item) => {
      const other = nameOf(item) === undefined ? undefined : part.find((one) => nameOf(one) === nameOf(item));
      return other === undefined ? item : merged(item, other);
    });
    const known = new Set(base.map(nameOf));
    const isNew = (item: unknown) =>
      nameOf(item) === undefined
        ? !kept.some((one) => isDeepStrictEqual(one, item))
        : !known.has(nameOf(item));
    return [...kept, ...part.filter(isNew)];
  }
  if (!isRecord(base) || !isRecord(part)) return part;
  const result: Record<string, unknown> = { ...base };
  for (const [name, member] of Object.entries(part)) result[name] = merged(base[name], member);
  return result;
}

function nameOf(item: unknown): unknown {
  return isRecord(item) ? item["name"] : undefined;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
