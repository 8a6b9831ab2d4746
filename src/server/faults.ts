// Injects faults into a control plane, for tests and `krane dev`.
import type { Code } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { type ApplyInit, type ApplyMessage, type KindName, kindOf } from "../kinds/kinds.ts";
import { createSpec } from "./kind-messages.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { ClusterRpc, RpcFaults } from "./rpc-faults.ts";
import type { StreamGate } from "./stream-gate.ts";

export interface Faults {
  /** Ends every open stream with `unavailable`; agents may reconnect at once. */
  cutStreams(): void;
  /** Streams stay open but deliver nothing. */
  pauseStreams(): void;
  resumeStreams(): void;
  /** Fails the next calls of an RPC; Infinity fails them until `heal`. Plans are used up in order. */
  failNext(rpc: ClusterRpc, code: Code, times?: number, metadata?: Readonly<Record<string, string>>): void;
  /** Leaves the next calls of an RPC without a response until their clients give up. */
  hangNext(rpc: ClusterRpc, times?: number): void;
  /** Undoes failNext, hangNext and pauseStreams. */
  heal(): void;
  /** A restore from an empty backup: the region exists; its rows, reports and counter are gone. */
  restoreFromEmpty(region: string): void;
  /** The next change gets the version after this one. */
  setCounter(region: string, counter: bigint): void;
  /** A row that became visible late, with a version that cursors have already passed. */
  insertBehind<K extends KindName>(region: string, kind: K, spec: ApplyInit<K>, version: bigint): void;
  /**
   * Changes a row without the checks of the admin API, as a control plane with other rules would. Returns the new
   * version; undefined without a row.
   */
  editUnchecked<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    change: (spec: ApplyMessage<K>) => ApplyMessage<K>,
  ): Promise<bigint | undefined>;
  /** A row that this server cannot read, as if a newer server had written it; streams send only its version. */
  insertUnreadable<K extends KindName>(region: string, kind: K, spec: ApplyInit<K>): bigint;
  /** The number of open streams. */
  readonly openStreams: number;
}

export function createFaults(
  {
    store,
    streams,
    rpcs,
  }: { readonly store: MemoryStore; readonly streams: StreamGate; readonly rpcs: RpcFaults },
  { clock }: { readonly clock: Clock },
): Faults {
  return {
    cutStreams: () => streams.cut(),
    pauseStreams: () => streams.pause(),
    resumeStreams: () => streams.resume(),
    failNext: (rpc, code, times = 1, metadata = {}) => rpcs.refuse(rpc, code, times, metadata),
    hangNext: (rpc, times = 1) => rpcs.hang(rpc, times),
    heal() {
      rpcs.clear();
      streams.resume();
    },
    restoreFromEmpty(region) {
      // A database is never restored under a running server.
      streams.cut();
      store.clear(region);
    },
    setCounter: (region, counter) => store.setCounter(region, counter),
    insertBehind(region, kind, init, version) {
      const spec = createSpec(kind, init);
      const row = { id: kindOf(kind).idOf(spec), spec, desired: "running", version } as const;
      store.insertSilently(region, kind, row);
    },
    editUnchecked: (region, kind, id, change) =>
      store.edit(region, kind, id, change, { by: "admin", atMs: clock.wallMs() }),
    insertUnreadable(region, kind, init) {
      const spec = createSpec(kind, init);
      return store.insert(region, kind, { id: kindOf(kind).idOf(spec), spec, desired: "unreadable" });
    },
    get openStreams() {
      return streams.openCount;
    },
  };
}
