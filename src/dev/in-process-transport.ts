// A KubeTransport that calls the embedded API server directly instead of through a socket.

import {
  type ApiServer,
  createHandler,
  type HandlerOptions,
  type WholeResponse,
} from "@krane/kube-apiserver";
import { KubeApiError } from "../kube/errors.ts";
import type { KubeResponse, KubeStream, KubeTransport } from "../kube/transport.ts";

export type InProcessOptions = HandlerOptions;

export function createInProcessTransport(server: ApiServer, options: InProcessOptions = {}): KubeTransport {
  const handler = createHandler(server, options);
  const closing = new AbortController();
  return {
    async send(request, signal) {
      const answer = await handler(request, AbortSignal.any([signal, closing.signal]));
      if (answer.kind === "whole") return responseOf(answer);
      answer.close();
      throw new KubeApiError("malformed", `${request.path} returned a stream`);
    },
    async stream(request, signal): Promise<KubeStream> {
      const answer = await handler(request, AbortSignal.any([signal, closing.signal]));
      if (answer.kind === "stream") return { status: 200, values: answer.values };
      return { status: answer.status, refusal: responseOf(answer), values: nothing() };
    },
    async close() {
      closing.abort(new KubeApiError("network", "the transport was closed"));
    },
  };
}

async function* nothing(): AsyncGenerator<never> {
  // A rejected watch has no events.
}

function responseOf({ status, body, retryAfterSeconds }: WholeResponse): KubeResponse {
  return retryAfterSeconds === undefined ? { status, body } : { status, body, retryAfterSeconds };
}
