// Looks up the objects of one kind that the watch no longer shows. Somebody may only have removed the labels that the
// watch selects by: then the object lives, with all that it runs, and must not count as gone.
//
// - An object that krane itself deletes is not looked up: the answer to the delete tells.
// - A found object stays in the cache, so that it is repaired. No watch shows it until its labels are back, so it is
//   looked up again from time to time.
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import { type WorkOutcome, WorkQueue } from "../concurrency/work-queue.ts";
import type { DeleteOutcome, KubeApi } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import type { CacheEntry, ObjectCache } from "../kube/object-cache.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import { isNotFound } from "./classify.ts";

export interface DeparturesDeps {
  readonly api: Pick<KubeApi, "get">;
  readonly clock: Clock;
  readonly random: Random;
  onError(kind: string, error: unknown): void;
}

const lookUpsAtOnce = 4;
const lookAgainMs = 30_000;
const backoff = { initialMs: 500, maxMs: 30_000, jitter: "equal" } as const;
const done: WorkOutcome = { kind: "done" };

export class Departures<T extends KubeObject, P, I extends string> {
  private readonly kind: ResourceKind<T>;
  private readonly cache: ObjectCache<T, P, I>;
  private readonly deps: DeparturesDeps;
  private readonly queue: WorkQueue;
  /** The uids that a delete of krane's is under way for. */
  private readonly leaving = new Set<string>();

  constructor(kind: ResourceKind<T>, cache: ObjectCache<T, P, I>, deps: DeparturesDeps) {
    this.kind = kind;
    this.cache = cache;
    this.deps = deps;
    const { clock, random } = deps;
    const onHandlerError = (_: string, error: unknown) => deps.onError(kind.kind, error);
    this.queue = new WorkQueue({ backoff }, { clock, random, onHandlerError });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.queue.run(lookUpsAtOnce, (key, work) => this.lookUp(key, work), signal);
  }

  /** The watch no longer shows this object. */
  note({ key, uid }: Pick<CacheEntry<P>, "key" | "uid">): void {
    if (!this.leaving.has(uid)) this.queue.add(key);
  }

  /** Deletes an object. `onGone` is called if that is the end of it. */
  async whileLeaving(
    entry: Pick<CacheEntry<P>, "key" | "uid">,
    send: () => Promise<DeleteOutcome>,
    onGone: () => void,
  ): Promise<DeleteOutcome> {
    this.leaving.add(entry.uid);
    try {
      const outcome = await send();
      if (outcome.kind !== "deleting") onGone();
      return outcome;
    } finally {
      this.leaving.delete(entry.uid);
      if (this.cache.getMissing(entry.key)?.uid === entry.uid) this.note(entry);
    }
  }

  /** Adds an object that another one names, if it is krane's. Returns false if it is not. */
  async find(
    ref: ObjectRef,
    uid: string,
    isOurs: (value: P) => boolean,
    signal: AbortSignal,
  ): Promise<boolean> {
    const found = await this.deps.api.get(this.kind, ref, {}, signal);
    const entry = found && this.cache.entryOf(found);
    if (entry?.uid !== uid || !isOurs(entry.value)) return false;
    this.keep(entry);
    return true;
  }

  /** Adds an object that was found by its name. */
  keep(entry: CacheEntry<P>): void {
    this.cache.addFound(entry);
    this.queue.addAfter(entry.key, lookAgainMs);
  }

  private async lookUp(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const missing = this.cache.getMissing(key);
    if (missing === undefined || this.leaving.has(missing.uid)) return done;
    try {
      const found = await this.deps.api.get(this.kind, refOf(key), {}, signal);
      this.cache.settleMissing(key, missing.uid, found && this.cache.entryOf(found));
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      // Without the kind there are no objects of it.
      if (!isNotFound(error)) return { kind: "retry" };
      this.cache.settleMissing(key, missing.uid, undefined);
    }
    return this.cache.getMissing(key) === undefined ? done : { kind: "again", afterMs: lookAgainMs };
  }
}

function refOf(key: string): ObjectRef {
  const [namespace = "", name] = key.split("/");
  return name === undefined ? { name: namespace } : { namespace, name };
}
