// Watches every kind that can own or be owned, once for all controllers: built-in kinds, and custom ones as their
// definitions come and go.
import type { CustomResourceDefinition } from "kubernetes-types/apiextensions/v1.js";
import { type ApiServerDeps, onAbort, sleep } from "../clock.ts";
import { apiVersionOf } from "../resource.ts";
import { builtinResources } from "../served-kinds.ts";
import type { KubeObject, ResourceKind } from "../types.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { backoffMs } from "./key-queue.ts";
import { LiveObjects } from "./live-objects.ts";
import { crdKind } from "./watched-kinds.ts";

export interface WatchedKind {
  readonly kind: ResourceKind;
  readonly objects: LiveObjects;
}

type AnyChange = (
  kind: ResourceKind,
  object: KubeObject | undefined,
  previous: KubeObject | undefined,
) => void;

export class ClusterView {
  private readonly deps: KindWatchDeps;
  private readonly watched = new Map<string, WatchedKind>();
  private readonly custom = new Map<string, { readonly name: string; stop(): void }>();
  private readonly anyChange: AnyChange[] = [];
  private readonly running = new Set<Promise<void>>();

  constructor(deps: KindWatchDeps) {
    this.deps = deps;
    for (const { kind, virtual } of builtinResources) {
      // There are many events, and they neither own objects nor are owned.
      if (!virtual && kind.plural !== "events") this.add(kind);
    }
  }

  of<T extends KubeObject>(kind: ResourceKind<T>): LiveObjects<T> {
    const known = this.watched.get(textOf(kind));
    if (known === undefined) throw new Error(`kind ${textOf(kind)} is not watched`);
    return known.objects as unknown as LiveObjects<T>;
  }

  kinds(): readonly WatchedKind[] {
    return [...this.watched.values()];
  }

  findKind(apiVersion: string, kind: string): WatchedKind | undefined {
    return this.kinds().find((known) => known.kind.kind === kind && apiVersion === apiVersionOf(known.kind));
  }

  dependentsOf(uid: string): { readonly kind: ResourceKind; readonly object: KubeObject }[] {
    return this.kinds().flatMap(({ kind, objects }) =>
      objects.ownedBy(uid).map((object) => ({ kind, object })),
    );
  }

  onAnyChange(listener: AnyChange): void {
    this.anyChange.push(listener);
  }

  /** Resolves when every built-in kind has been listed once. */
  async synced(): Promise<void> {
    await Promise.all(this.kinds().map(({ objects }) => objects.synced));
  }

  /** Resolves when the signal has aborted and every watch has ended. */
  async run(signal: AbortSignal): Promise<void> {
    for (const known of this.kinds()) this.start(known, signal);
    this.of(crdKind).onChange((crd, previous) => this.follow(crd ?? previous, crd !== undefined, signal));
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private start({ kind, objects }: WatchedKind, signal: AbortSignal): void {
    const watch = watchKind(kind, objects, this.deps, signal).finally(() => this.running.delete(watch));
    this.running.add(watch);
  }

  private add(kind: ResourceKind): WatchedKind {
    const known = { kind, objects: new LiveObjects() };
    known.objects.onChange((object, previous) => {
      for (const listener of this.anyChange) listener(kind, object, previous);
    });
    this.watched.set(textOf(kind), known);
    return known;
  }

  private follow(crd: CustomResourceDefinition | undefined, exists: boolean, signal: AbortSignal): void {
    const definition = crd?.metadata?.name ?? "";
    const kind = exists && crd !== undefined ? servedKind(crd) : undefined;
    const current = this.custom.get(definition);
    if (current?.name === (kind && textOf(kind))) return;
    current?.stop();
    this.custom.delete(definition);
    if (kind === undefined || signal.aborted) return;
    const own = new AbortController();
    const stopListening = onAbort(signal, () => own.abort(signal.reason));
    const known = this.add(kind);
    const stop = () => {
      stopListening();
      own.abort();
      this.watched.delete(textOf(kind));
      known.objects.replace([]);
    };
    this.custom.set(definition, { name: textOf(kind), stop });
    this.start(known, own.signal);
  }
}

function servedKind({ spec, status }: CustomResourceDefinition): ResourceKind | undefined {
  const isEstablished = (status?.conditions ?? []).some(
    (condition) => condition.type === "Established" && condition.status === "True",
  );
  const version = (spec?.versions ?? []).find(({ served }) => served)?.name;
  if (!isEstablished || spec === undefined || version === undefined) return undefined;
  const { group, names, scope } = spec;
  return { group, version, kind: names.kind, plural: names.plural, namespaced: scope === "Namespaced" };
}

function textOf({ group, plural }: ResourceKind): string {
  return `${plural}.${group}`;
}

// Keeps one kind's LiveObjects up to date with a list and a watch. A watch that ends is resumed; one that fails starts
// over with a list.

interface KindWatchDeps extends ApiServerDeps {
  readonly client: ClusterClient;
  /** Called for every failure; the watch is retried. */
  onError(part: string, key: string, error: unknown): void;
}

const retry = { initialMs: 100, maxMs: 5_000 };

/** Resolves when the signal has aborted. Never rejects; errors make it start over. */
async function watchKind<T extends KubeObject>(
  kind: ResourceKind<T>,
  objects: LiveObjects<T>,
  deps: KindWatchDeps,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const { items, resourceVersion } = await deps.client.list(kind, undefined, signal);
      objects.replace(items);
      failures = 0;
      await follow(kind, objects, resourceVersion, deps, signal);
    } catch (error) {
      if (!signal.aborted) deps.onError("watch", kind.plural, error);
      await sleep(deps.clock, backoffMs(retry, failures++, deps.random), signal).catch(() => undefined);
    }
  }
}

async function follow<T extends KubeObject>(
  kind: ResourceKind<T>,
  objects: LiveObjects<T>,
  from: string,
  { client, clock }: KindWatchDeps,
  signal: AbortSignal,
): Promise<void> {
  let resourceVersion = from;
  while (!signal.aborted) {
    const events = await client.watch(kind, resourceVersion, signal);
    const before = resourceVersion;
    for await (const value of events) {
      resourceVersion = take(value as WatchValue<T>, objects) ?? resourceVersion;
    }
    // Pause, in case the server ends every watch immediately.
    if (before === resourceVersion) await sleep(clock, retry.maxMs, signal);
  }
}

interface WatchValue<T extends KubeObject> {
  readonly type: string;
  readonly object: T;
}

function take<T extends KubeObject>(
  { type, object }: WatchValue<T>,
  objects: LiveObjects<T>,
): string | undefined {
  if (type === "ERROR") throw new Error("the watch ended with an error event");
  if (type === "DELETED") objects.observeRemoval(object);
  else if (type !== "BOOKMARK") objects.observe(object);
  return object.metadata?.resourceVersion;
}
