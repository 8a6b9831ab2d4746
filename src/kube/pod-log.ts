// Reads the log of a container. Kubernetes puts the time before each line, so that a stream that was cut can go on behind
// the last line.
import { utcText } from "../concurrency/clock.ts";
import { objectPath } from "./client.ts";
import { refusedError } from "./errors.ts";
import { pods } from "./resources.ts";
import type { ByteTransport } from "./transport.ts";
import type { ObjectRef } from "./types.ts";

export interface PodLogOptions {
  /** Absent: the only container. */
  readonly container?: string;
  readonly previous: boolean;
  readonly follow: boolean;
  readonly tailLines?: number;
  readonly sinceSeconds?: number;
  /** Lines of the same second may come again: Kubernetes ignores fractions. */
  readonly sinceTimeMs?: number;
}

/** Rejects with a KubeApiError if the server refuses. The connection is closed when the iteration ends. */
export async function openPodLog(
  transport: ByteTransport,
  pod: ObjectRef,
  options: PodLogOptions,
  signal: AbortSignal,
): Promise<AsyncIterable<Buffer>> {
  const path = objectPath(pods, pod, "log");
  const { status, refusal, bytes } = await transport.bytes(
    { method: "GET", path, query: queryOf(options), accept: "*/*" },
    signal,
  );
  if (refusal !== undefined)
    throw refusedError(`logs of pod ${pod.namespace}/${pod.name}`, { ...refusal, status });
  return bytes;
}

function queryOf(options: PodLogOptions): Record<string, string> {
  const { container, previous, follow, tailLines, sinceSeconds, sinceTimeMs } = options;
  return {
    timestamps: "true",
    ...(container !== undefined && { container }),
    ...(previous && { previous: "true" }),
    ...(follow && { follow: "true" }),
    ...(tailLines !== undefined && { tailLines: String(tailLines) }),
    ...(sinceSeconds !== undefined && { sinceSeconds: String(sinceSeconds) }),
    ...(sinceTimeMs !== undefined && { sinceTime: utcText(sinceTimeMs) }),
  };
}
