// Makes the next calls of an RPC fail with a code, or hang, for tests and `krane dev`.
// Faults apply to requests, so nothing is stored.
import { type Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";

export type ClusterRpc = keyof typeof ClusterService.method;

type Fault = { readonly kind: "refuse"; readonly error: ConnectError } | { readonly kind: "hang" };

export class RpcFaults {
  private readonly byRpc = new Map<string, { fault: Fault; times: number }[]>();

  refuse(rpc: ClusterRpc, code: Code, times: number, metadata: Readonly<Record<string, string>> = {}): void {
    this.plan(
      rpc,
      { kind: "refuse", error: new ConnectError("refused on demand", code, { ...metadata }) },
      times,
    );
  }

  hang(rpc: ClusterRpc, times: number): void {
    this.plan(rpc, { kind: "hang" }, times);
  }

  /** Drops the planned faults. Calls that already hang stay so until their clients give up. */
  clear(): void {
    this.byRpc.clear();
  }

  readonly interceptor: Interceptor = (next) => async (request) => {
    const fault = this.take(request.method.localName);
    if (fault?.kind === "refuse") throw fault.error;
    if (fault?.kind === "hang") await aborted(request.signal);
    return next(request);
  };

  private plan(rpc: ClusterRpc, fault: Fault, times: number): void {
    this.byRpc.set(rpc, [...(this.byRpc.get(rpc) ?? []), { fault, times }]);
  }

  private take(rpc: string): Fault | undefined {
    const planned = this.byRpc.get(rpc);
    const first = planned?.[0];
    if (planned === undefined || first === undefined) return undefined;
    first.times -= 1;
    if (first.times <= 0) planned.shift();
    return first.fault;
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.throwIfAborted();
    onAbort(signal, () => reject(signal.reason));
  });
}
