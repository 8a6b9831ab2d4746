// What the pods of a served cluster print, as a test says: pods run no containers there.
import type { StreamResponse } from "@krane/kube-apiserver";
import type { ServedCluster } from "./served-cluster.ts";

export interface LogRequestSeen {
  readonly pod: string;
  readonly query: Readonly<Record<string, string>>;
}

/** What a container prints: lines with their times, as Kubernetes sends them; ends when its generator does. */
export type Program = (asked: LogRequestSeen, closed: AbortSignal) => AsyncIterable<string>;

export interface PrintedLogs {
  /** The requests for logs that the API server got. */
  readonly asked: LogRequestSeen[];
  /** How many of them are open. */
  openLogs(): number;
  run(program: Program): void;
}

/** Until a program is given, nothing is printed. */
export function printLogs({ server }: ServedCluster): PrintedLogs {
  const asked: LogRequestSeen[] = [];
  const open = new Set<AbortController>();
  let program: Program = endless([]);
  server.faults.intercept(({ method, path, query = {} }) => {
    const [, pod] = /\/pods\/([^/]+)\/log$/.exec(path) ?? [];
    if (method !== "GET" || pod === undefined) return undefined;
    const seen = { pod, query };
    asked.push(seen);
    const closed = new AbortController();
    open.add(closed);
    const response: StreamResponse = {
      kind: "stream",
      isText: true,
      values: program(seen, closed.signal),
      close() {
        open.delete(closed);
        closed.abort(new Error("the client has left"));
      },
    };
    return response;
  });
  return {
    asked,
    openLogs: () => open.size,
    run(next) {
      program = next;
    },
  };
}

/** As Kubernetes sends it; `n` is the number of the line in its second. */
export function stamped(second: number, n: number, text: string): string {
  const time = new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString().slice(0, 19);
  return `${time}.${String(n).padStart(9, "0")}Z ${text}\n`;
}

/** Prints the lines, and then nothing more. */
export function endless(lines: readonly string[]): Program {
  return async function* (_, closed) {
    yield lines.join("");
    if (!closed.aborted) await new Promise((resolve) => closed.addEventListener("abort", resolve));
  };
}

/** Prints the lines and ends, as a log that is not followed. */
export function finite(lines: readonly string[]): Program {
  return async function* () {
    yield lines.join("");
  };
}
