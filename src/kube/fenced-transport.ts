// Lets a write pass only while the lease of this process outlasts it (K13). Reads always pass, and so do requests that
// store nothing.
//
// A request may take half of the time that is left on the lease. If it takes longer, the client resets the connection, so
// that the request does not arrive later; and the server gives up (`timeout`) as long after it arrived. Both together
// are over before another process can write. The check is repeated right before the request is sent, because it may
// have waited for a connection, and the process may have been stalled.
import { KubeApiError } from "./errors.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "./transport.ts";

export interface WriteFence {
  /** How long no other process can write; infinite if this one is alone. */
  leftMs(): number;
  /** Called when the outcome of a write is unknown: the server may still act on it for this long. */
  onUnknown?(forMs: number): void;
}

// With less than this, requests would often time out. A lease that is renewed in time never has so little left.
const timeoutMinMs = 2_000;
// How long a request may wait for a connection. One that waits longer is refused, unless the lease is renewed meanwhile.
const waitMaxMs = 1_000;

const storesNothing = /\/(?:tokenreviews|[a-z]*subjectaccessreviews)$/;

export function fencedTransport(transport: KubeTransport, fence: WriteFence): KubeTransport {
  return {
    send: (request, signal) =>
      isWrite(request) ? sendWrite(transport, fence, request, signal) : transport.send(request, signal),
    stream: (request, signal) => transport.stream(request, signal),
    close: () => transport.close(),
  };
}

async function sendWrite(
  transport: KubeTransport,
  fence: WriteFence,
  request: KubeRequest,
  signal: AbortSignal,
): Promise<KubeResponse> {
  const leftMs = fence.leftMs();
  if (leftMs === Number.POSITIVE_INFINITY) return transport.send(request, signal);
  const timeoutMs = Math.floor((leftMs - waitMaxMs) / 2);
  if (timeoutMs < timeoutMinMs) throw refusal(request);
  const check = () => {
    if (fence.leftMs() < 2 * timeoutMs) throw refusal(request);
  };
  const query = { ...request.query, timeout: `${timeoutMs}ms` };
  try {
    return await transport.send({ ...request, query, permit: { check, timeoutMs } }, signal);
  } catch (error) {
    const isUnsent = error instanceof KubeApiError && error.code === "no-lease";
    if (!isUnsent) fence.onUnknown?.(timeoutMs);
    throw error;
  }
}

function isWrite({ method, path }: KubeRequest): boolean {
  return method !== "GET" && !storesNothing.test(path);
}

function refusal({ method, path }: KubeRequest): KubeApiError {
  const message = `${method} ${path}: not sent, because this agent does not hold the lease for long enough`;
  return new KubeApiError("no-lease", message);
}
