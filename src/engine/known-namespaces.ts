// Which namespaces are there, as far as this process has seen: each is tried to be created once, however
// many objects wait for it, and then taken for granted until an answer says otherwise.
import type { Clock } from "../concurrency/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import { namespaces } from "../kube/resources.ts";
import { fieldManager } from "../model/labels.ts";
import { desiredNamespace } from "../model/names.ts";
import { saysConflict } from "./classify.ts";

// More than a cluster has; then they are learned anew.
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

  /** Something that lives in it proves it. */
  note(name: string): void {
    if (this.known.has(name)) return;
    if (this.known.size >= knownMax) this.known.clear();
    this.known.add(name);
  }

  forget(name: string): void {
    this.known.delete(name);
    this.madeAtMs.delete(name);
  }

  /** Whether this process made it moments ago, so that hardly anything can be in it but what krane put there. */
  isNew(name: string): boolean {
    const madeMs = this.madeAtMs.get(name);
    return madeMs !== undefined && this.deps.clock.nowMs() - madeMs < newMs;
  }

  /** Somebody else is at work in it as well. */
  age(name: string): void {
    this.madeAtMs.delete(name);
  }

  /** Creates it where it is missing, uses it as it is where it exists. Returns how many writes that took. */
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
      if (!saysConflict(error)) throw error;
      this.note(name);
      return 0;
    }
    this.note(name);
    if (this.madeAtMs.size >= knownMax) this.madeAtMs.clear();
    this.madeAtMs.set(name, clock.nowMs());
    return 1;
  }
}
