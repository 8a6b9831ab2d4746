// Creates namespaces, and remembers which exist: each is created once, however many objects need it, and is assumed
// to exist until a response says otherwise.
import type { Clock } from "../concurrency/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import { namespaces } from "../kube/resources.ts";
import { fieldManager } from "../model/labels.ts";
import { desiredNamespace } from "../model/namespace.ts";
import { isConflict } from "./classify.ts";

// More than a cluster has. When full, all are dropped and learned again.
const knownMax = 10_000;
const newMs = 60_000;

export class KnownNamespaces {
  private readonly deps: { readonly api: KubeApi; readonly clock: Clock };
  private readonly known = new Set<string>();
  private readonly madeAtMs = new Map<string, number>();
  private readonly making = new Map<string, Promise<number>>();

  constructor(deps: { readonly api: KubeApi; readonly clock: Clock }) {
    this.deps = deps;
  }

  has(name: string): boolean {
    return this.known.has(name);
  }

  /** A live object was seen in it, so it exists. */
  note(name: string): void {
    if (this.known.has(name)) return;
    if (this.known.size >= knownMax) this.known.clear();
    this.known.add(name);
  }

  forget(name: string): void {
    this.known.delete(name);
    this.madeAtMs.delete(name);
  }

  /** Whether this process created it so recently that it can hardly contain anything but krane's objects. */
  isNew(name: string): boolean {
    const madeMs = this.madeAtMs.get(name);
    return madeMs !== undefined && this.deps.clock.nowMs() - madeMs < newMs;
  }

  /** Another client writes to it too, so it no longer counts as new. */
  age(name: string): void {
    this.madeAtMs.delete(name);
  }

  /** Creates it if it is missing; an existing one is used as it is. Returns the number of writes. */
  async ensure(name: string, signal: AbortSignal): Promise<number> {
    if (this.known.has(name)) return 0;
    const present = this.making.get(name);
    if (present !== undefined) {
      await present;
      return 0;
    }
    const making = this.create(name, signal).finally(() => this.making.delete(name));
    this.making.set(name, making);
    return making;
  }

  private async create(name: string, signal: AbortSignal): Promise<number> {
    const { api, clock } = this.deps;
    try {
      await api.create(namespaces, desiredNamespace(name), { fieldManager }, signal);
    } catch (error) {
      if (!isConflict(error)) throw error;
      this.note(name);
      return 0;
    }
    this.note(name);
    if (this.madeAtMs.size >= knownMax) this.madeAtMs.clear();
    this.madeAtMs.set(name, clock.nowMs());
    return 1;
  }
}
