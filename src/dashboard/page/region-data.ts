// The objects of one region, kept up to date while a view shows them.

import { ConnectError } from "@connectrpc/connect";
import { computed, effect, type Signal, signal } from "@preact/signals";
import {
  type AppView,
  type Environment,
  ObjectKind,
  type ObjectRef,
  type ObjectView,
  ObjectView_Phase as Phase,
  type RegionNews,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Model } from "./model.ts";
import { type KnownRows, listedRows } from "./region-rows.ts";

const pageSize = 500;
/** One call reads as many objects by their ids; beyond it, the whole list is read again. */
const namedMax = 500;
const refreshDelayMs = 100;
const reloadPauseMs = 2_000;

/** Phases that change without an event of the object itself, when the agent reports its state. */
const unsettled: ReadonlySet<Phase> = new Set([
  Phase.WAITING,
  Phase.PROGRESSING,
  Phase.DELETING,
  Phase.FAILED,
  Phase.UNSPECIFIED,
]);

export class RegionData {
  readonly region: string;
  /** By kind and id; undefined until the first page is read. */
  readonly objects: Signal<ReadonlyMap<string, ObjectView> | undefined> = signal(undefined);
  readonly apps: Signal<readonly AppView[]> = signal([]);
  readonly environments: Signal<readonly Environment[]> = signal([]);
  private readonly known: KnownRows = new WeakMap();
  /** Of everything above. */
  readonly rows = computed(() =>
    listedRows({
      objects: [...(this.objects.value?.values() ?? [])],
      apps: this.apps.value,
      environments: this.environments.value,
      kinds: this.model.kinds.value,
      known: this.known,
    }),
  );
  readonly isComplete = signal(false);
  readonly problem = signal("");
  private readonly model: Model;
  private readonly due = new Map<string, ObjectRef>();
  private stateAtMs = 0n;
  private isRefreshing = false;
  /** The whole list is being read. */
  private isReading = false;
  /** It is, or was a moment ago. */
  private isReloading = false;
  private needsReload = false;
  private isStopped = false;
  private stopListening: () => void = () => undefined;

  constructor(model: Model, region: string) {
    this.model = model;
    this.region = region;
  }

  start(): void {
    const stopListening = this.model.onNews((news) => this.hear(news));
    // What changes between a read and the start of the stream would be missed, so the stream comes first.
    const stopWaiting = effect(() => {
      if (this.model.connection.value.kind !== "connecting" && !this.isComplete.peek()) void this.reload();
    });
    this.stopListening = () => {
      stopListening();
      stopWaiting();
    };
  }

  stop(): void {
    this.isStopped = true;
    this.stopListening();
  }

  private hear(news: readonly RegionNews[]): void {
    for (const { region, changed, incomplete, stateAtMs } of news) {
      if (region !== this.region) continue;
      for (const ref of changed) this.due.set(keyOf(ref), ref);
      // The agent's state decides the phase of what is not settled.
      if (stateAtMs !== this.stateAtMs) {
        for (const [key, { ref, phase }] of this.objects.value ?? [])
          if (ref !== undefined && unsettled.has(phase)) this.due.set(key, ref);
      }
      this.stateAtMs = stateAtMs;
      if (incomplete) this.needsReload = true;
      this.refreshLater();
    }
  }

  /** One at a time, so that an older answer never replaces a newer one. */
  private refreshLater(): void {
    if (this.isRefreshing) return;
    this.isRefreshing = true;
    this.model.browser.after(refreshDelayMs, () => {
      const done = this.refresh().catch((error: unknown) => this.note(error));
      void done.then(() => {
        this.isRefreshing = false;
        if (this.due.size > 0 && !this.isStopped && !this.isReading) this.refreshLater();
      });
    });
  }

  private async refresh(): Promise<void> {
    // Its pages may be older than what would be read now, and would replace it.
    if (this.isReading) return;
    const refs = [...this.due.values()];
    this.due.clear();
    if (this.needsReload || refs.length > namedMax) return this.reload();
    if (refs.some(({ kind }) => kind === ObjectKind.APP)) await this.loadApps();
    if (refs.some(({ kind }) => kind === ObjectKind.ENVIRONMENT)) await this.loadEnvironments();
    const objects = refs.filter(({ kind }) => kind !== ObjectKind.APP && kind !== ObjectKind.ENVIRONMENT);
    const kinds = new Set(objects.map(({ kind }) => kind));
    const read = await Promise.all(
      [...kinds].map((kind) =>
        this.readPages({ kind, ids: objects.filter((ref) => ref.kind === kind).map(({ id }) => id) }),
      ),
    );
    if (this.isStopped || objects.length === 0) return;
    const after = new Map(this.objects.value);
    for (const ref of objects) after.delete(keyOf(ref));
    for (const object of read.flat()) after.set(keyOf(object.ref), object);
    this.objects.value = after;
  }

  private async readPages(query: {
    readonly kind: ObjectKind;
    readonly ids: string[];
  }): Promise<readonly ObjectView[]> {
    const read: ObjectView[] = [];
    for (let pageToken = ""; ; ) {
      const page = await this.model.api.listObjects({ ...query, region: this.region, pageSize, pageToken });
      read.push(...page.objects);
      pageToken = page.nextPageToken;
      if (pageToken === "") return read;
    }
  }

  private async reload(): Promise<void> {
    if (this.isReloading) {
      this.needsReload = true;
      return;
    }
    this.isReloading = true;
    this.isReading = true;
    this.needsReload = false;
    this.due.clear();
    try {
      await this.loadApps();
      await this.loadEnvironments();
      await this.loadObjects();
      this.problem.value = "";
    } catch (error) {
      this.note(error);
    }
    this.isReading = false;
    if (this.due.size > 0 && !this.isStopped) this.refreshLater();
    // A region in which everything changes is read every few seconds, not all the time.
    this.model.browser.after(reloadPauseMs, () => {
      this.isReloading = false;
      if (this.needsReload && !this.isStopped) void this.reload();
    });
  }

  private async loadObjects(): Promise<void> {
    const read = new Map<string, ObjectView>();
    for (let pageToken = ""; !this.isStopped; ) {
      const page = await this.model.api.listObjects({ region: this.region, pageSize, pageToken });
      for (const object of page.objects) read.set(keyOf(object.ref), object);
      pageToken = page.nextPageToken;
      // The first time, show what there is; later, replace the list as a whole.
      if (!this.isComplete.value || pageToken === "") this.objects.value = new Map(read);
      if (pageToken === "") break;
    }
    this.isComplete.value = true;
  }

  private async loadApps(): Promise<void> {
    const apps: AppView[] = [];
    for (let pageToken = ""; !this.isStopped; ) {
      const page = await this.model.api.listApps({ region: this.region, pageToken });
      apps.push(...page.apps);
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    this.apps.value = apps;
  }

  private async loadEnvironments(): Promise<void> {
    const read = await allEnvironments(this.model, this.region);
    if (!this.isStopped) this.environments.value = read;
  }

  private note(error: unknown): void {
    if (this.model.fail(error)) return;
    this.problem.value = ConnectError.from(error).rawMessage;
  }
}

export async function allEnvironments({ api }: Model, region: string): Promise<readonly Environment[]> {
  const environments: Environment[] = [];
  for (let pageToken = ""; ; ) {
    const page = await api.listEnvironments({ region, pageSize, pageToken });
    environments.push(...page.environments);
    pageToken = page.nextPageToken;
    if (pageToken === "") return environments;
  }
}

function keyOf(ref: ObjectRef | undefined): string {
  return `${ref?.kind ?? 0}/${ref?.id ?? ""}`;
}
