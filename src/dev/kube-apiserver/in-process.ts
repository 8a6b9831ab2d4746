// The embedded server as a KubeTransport: requests are direct calls. Bodies are copied on
// the way in and out, so that neither side sees the other's later changes; nothing is
// turned into text.
import { KubeApiError } from "../../kube/errors.ts";
import type { KubeRequest, KubeResponse, KubeStream, KubeTransport } from "../../kube/transport.ts";
import { type ApiServer, administrator } from "./api-server.ts";
import { copyJson } from "./json.ts";
import type { ServerAnswer, ServerRequest, StreamAnswer, WholeAnswer } from "./request.ts";
import type { User } from "./resource.ts";

export interface InProcessOptions {
  /** Default: the administrator. */
  readonly user?: User;
  /** Names the field manager of requests that do not. Default "unknown", as over HTTP without a user agent. */
  readonly userAgent?: string;
}

export function createInProcessTransport(server: ApiServer, options: InProcessOptions = {}): KubeTransport {
  const closing = new AbortController();
  const open = new Set<StreamAnswer>();
  const ask = async (request: KubeRequest, signal: AbortSignal): Promise<ServerAnswer> => {
    const either = AbortSignal.any([signal, closing.signal]);
    either.throwIfAborted();
    const known: ServerRequest = {
      ...request,
      ...(request.body === undefined ? {} : { body: copyJson(request.body) }),
      user: options.user ?? administrator,
      ...(options.userAgent === undefined ? {} : { userAgent: options.userAgent }),
    };
    const outcome = server.faults.outcomeOf(known);
    if (outcome === "hang") return hang(either);
    return outcome ?? server.handle(known);
  };
  return {
    async send(request, signal) {
      const answer = await ask(request, signal);
      if (answer.kind === "whole") return responseOf(answer);
      answer.close();
      throw new KubeApiError("malformed", `${request.path} answered with a stream`);
    },
    async stream(request, signal): Promise<KubeStream> {
      const answer = await ask(request, signal);
      if (answer.kind === "whole") {
        return { status: answer.status, refusal: responseOf(answer), values: nothing() };
      }
      open.add(answer);
      return {
        status: 200,
        values: follow(answer, AbortSignal.any([signal, closing.signal]), () => open.delete(answer)),
      };
    },
    async close() {
      closing.abort(new KubeApiError("network", "the transport was closed"));
      for (const answer of open) answer.close();
    },
  };
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function* follow(
  answer: StreamAnswer,
  signal: AbortSignal,
  onEnd: () => void,
): AsyncGenerator<unknown> {
  const onAbort = (): void => answer.close();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) answer.close();
  try {
    for await (const value of answer.values) {
      signal.throwIfAborted();
      yield copyJson(value);
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", onAbort);
    answer.close();
    onEnd();
  }
}

async function* nothing(): AsyncGenerator<never> {
  // A refused watch has no events.
}

function responseOf({ status, body, retryAfterSeconds }: WholeAnswer): KubeResponse {
  const response = { status, body: copyJson(body) };
  return retryAfterSeconds === undefined ? response : { ...response, retryAfterSeconds };
}
