// The objects of one region, kept up to date while a view shows them.

import { Code, ConnectError } from "@connectrpc/connect";
import { type Signal, signal } from "@preact/signals";
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

const pageSize = 500;
/** Beyond it, reading the whole list again is cheaper than reading single objects. */
const singlesMax = 20;
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
  readonly isComplete = signal(false);
  readonly problem = signal("");
  private readonly model: Model;
  private readonly due = new Map<string, ObjectRef>();
  private stateAtMs = 0n;
  private isReloading = false;
  private needsReload = false;
  private isStopped = false;
  private stopListening: () => void = () => undefined;

  constructor(model: Model, region: string) {
    this.model = model;
    this.region = region;
  }

  start(): void {
    this.stopListening = this.model.onNews((news) => this.hear(news));
    void this.reload();
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
      this.model.browser.after(100, () => void this.refresh());
    }
  }

  private async refresh(): Promise<void> {
    const refs = [...this.due.values()];
    this.due.clear();
    if (this.needsReload || refs.length > singlesMax) return this.reload();
    if (refs.some(({ kind }) => kind === ObjectKind.APP)) await this.loadApps();
    if (refs.some(({ kind }) => kind === ObjectKind.ENVIRONMENT)) await this.loadEnvironments();
    const objects = refs.filter(({ kind }) => kind !== ObjectKind.APP && kind !== ObjectKind.ENVIRONMENT);
    const read = await Promise.all(objects.map((ref) => this.readOne(ref)));
    if (this.isStopped || read.length === 0) return;
    const after = new Map(this.objects.value);
    for (const [index, object] of read.entries()) {
      const ref = objects[index];
      if (object !== undefined) after.set(keyOf(object.ref), object);
      else if (ref !== undefined) after.delete(keyOf(ref));
    }
    this.objects.value = after;
  }

  /** Undefined if it is gone. */
  private async readOne(ref: ObjectRef): Promise<ObjectView | undefined> {
    try {
      const { object } = await this.model.api.getObject({ ref });
      return object?.phase === Phase.DELETED ? undefined : object;
    } catch (error) {
      if (ConnectError.from(error).code !== Code.NotFound) this.note(error);
      return this.objects.value?.get(keyOf(ref));
    }
  }

  private async reload(): Promise<void> {
    if (this.isReloading) {
      this.needsReload = true;
      return;
    }
    this.isReloading = true;
    this.needsReload = false;
    try {
      await this.loadApps();
      await this.loadEnvironments();
      await this.loadObjects();
      this.problem.value = "";
    } catch (error) {
      this.note(error);
    }
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
