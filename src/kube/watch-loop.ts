// One watch, from its opening to its end, under a watchdog: a connection that a firewall forgot
// looks exactly like a cluster in which nothing happens, except that bookmarks stop coming.
import { linkSignals } from "../concurrency/abort.ts";
import type { Clock, Timer } from "../concurrency/clock.ts";
import type { KubeApi, WatchEvent, WatchOptions } from "./api.ts";
import { KubeApiError } from "./errors.ts";
import type { KubeObject, ResourceKind } from "./types.ts";

export interface WatchDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
}

/** Resolves when the server ends the watch. What `onEvent` throws ends it too, and passes through. */
export async function followWatch<T extends KubeObject>(
  deps: WatchDeps,
  kind: ResourceKind<T>,
  options: WatchOptions & { readonly silenceMs: number },
  onEvent: (event: WatchEvent<T>) => void,
  signal: AbortSignal,
): Promise<void> {
  const { silenceMs, ...watchOptions } = options;
  const { api, clock } = deps;
  const linked = linkSignals(signal);
  let heardAtMs = clock.nowMs();

  // Setting a timer anew for each of ten thousand events a second costs more than looking, when it
  // fires, how much of the time is left.
  const check = () => {
    const leftMs = heardAtMs + silenceMs - clock.nowMs();
    if (leftMs > 0) timer = clock.setTimer(leftMs, check);
    else linked.abort(new KubeApiError("timeout", `watch ${kind.plural}: silent for ${silenceMs} ms`));
  };
  let timer: Timer = clock.setTimer(silenceMs, check);

  try {
    for await (const event of api.watch(kind, watchOptions, linked.signal)) {
      heardAtMs = clock.nowMs();
      onEvent(event);
    }
    linked.signal.throwIfAborted();
  } finally {
    timer.cancel();
    linked.release();
  }
}
