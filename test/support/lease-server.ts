// An API server with one Lease. It compares resourceVersions as the real one does, and each request can be delayed,
// lost on its way there, or lost on its way back.
import type { Lease } from "kubernetes-types/coordination/v1.js";
import { type Clock, sleep } from "../../src/concurrency/clock.ts";
import type { KubeApi, PatchOperation } from "../../src/kube/api.ts";
import { KubeApiError } from "../../src/kube/errors.ts";

/** What happens to one request. */
export interface Passage {
  readonly thereMs: number;
  readonly backMs: number;
  /** "there": the server never gets it. "back": the client never gets the response. */
  readonly lost?: "there" | "back" | undefined;
  /** The server answers with this status. */
  readonly status?: number | undefined;
}

const never = new AbortController().signal;

export class LeaseServer {
  lease: Lease | undefined;
  private revision = 0;
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The API as one client reaches it. The server completes a request that its client no longer waits for. */
  client(passage: () => Passage = () => ({ thereMs: 1, backMs: 1 })): KubeApi {
    const send = async <T>(handle: () => T, signal: AbortSignal): Promise<T> => {
      const { thereMs, backMs, lost, status } = passage();
      const arrived = sleep(this.clock, thereMs, never).then(() => {
        if (lost === "there") return hang<T>();
        if (status !== undefined) throw refused(status);
        return handle();
      });
      const answered = arrived.then(
        (value) => (lost === "back" ? hang<T>() : sleep(this.clock, backMs, never).then(() => value)),
        (error) => sleep(this.clock, backMs, never).then(() => Promise.reject(error)),
      );
      return untilAborted(answered, signal);
    };
    const unsupported = () => {
      throw new Error("not supported by the lease server");
    };
    return {
      get: (_, __, ___, signal) => send(() => structuredClone(this.lease) as never, signal),
      create: (_, object, __, signal) => send(() => this.create(object as unknown as Lease) as never, signal),
      patch: (_, object, operations, __, signal) =>
        send(() => this.patch(object as unknown as Lease, operations) as never, signal),
      list: unsupported,
      watch: unsupported,
      apply: unsupported,
      delete: unsupported,
    };
  }

  delete(): void {
    this.lease = undefined;
  }

  private create(lease: Lease): Lease {
    if (this.lease !== undefined) throw refused(409);
    return this.store(lease, `uid-${this.revision}`);
  }

  private patch(base: Lease, operations: readonly PatchOperation[]): Lease {
    if (this.lease === undefined) throw refused(404);
    if (this.lease.metadata?.resourceVersion !== base.metadata?.resourceVersion) throw refused(409);
    const [operation] = operations;
    const spec = (operation as { readonly value: Lease["spec"] }).value;
    return this.store({ ...this.lease, ...(spec && { spec }) }, this.lease.metadata?.uid ?? "");
  }

  private store(lease: Lease, uid: string): Lease {
    this.revision += 1;
    this.lease = { ...lease, metadata: { ...lease.metadata, uid, resourceVersion: `${this.revision}` } };
    return structuredClone(this.lease);
  }
}

function refused(status: number): KubeApiError {
  return new KubeApiError("refused", `status ${status}`, { status });
}

function hang<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
