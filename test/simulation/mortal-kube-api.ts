// A KubeApi whose owner dies: the n-th write still reaches the cluster, but nobody hears of it, and not
// one more call gets through.
import type { KubeApi } from "../../src/kube/api.ts";

export interface MortalKubeApi extends KubeApi {
  readonly isDead: boolean;
}

/** With 0 it dies in place of its first write. */
export function createMortalKubeApi(api: KubeApi, writesToLive: number): MortalKubeApi {
  let writes = 0;
  let isDead = false;
  const write = async <T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    if (!isDead && writes < writesToLive) {
      writes += 1;
      const result = await call();
      if (writes < writesToLive) return result;
    }
    isDead = true;
    return silence(signal);
  };
  return {
    ...api,
    get isDead() {
      return isDead;
    },
    get: (kind, ref, options, signal) => (isDead ? silence(signal) : api.get(kind, ref, options, signal)),
    apply: (kind, manifest, options, signal) =>
      write(() => api.apply(kind, manifest, options, signal), signal),
    patch: (kind, object, operations, options, signal) =>
      write(() => api.patch(kind, object, operations, options, signal), signal),
    create: (kind, object, options, signal) => write(() => api.create(kind, object, options, signal), signal),
    delete: (kind, ref, options, signal) => write(() => api.delete(kind, ref, options, signal), signal),
  };
}

function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
