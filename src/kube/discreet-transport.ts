// A transport that does not pass on what a server says about the secrets it was sent. A webhook may quote what it
// refuses, and the words of an error go into logs, into the status and to the control plane (K7).
import { withoutWords } from "./errors.ts";
import type { KubeRequest, KubeTransport } from "./transport.ts";

const secretPath = /\/(?:secrets(?:\/[^/]+)?|tokenreviews|serviceaccounts\/[^/]+\/token)$/;

export function discreetTransport(transport: KubeTransport): KubeTransport {
  return {
    async send(request, signal) {
      const answer = await transport.send(request, signal);
      return answer.status >= 300 && carriesSecret(request) ? withoutWords(answer) : answer;
    },
    stream: (request, signal) => transport.stream(request, signal),
    close: () => transport.close(),
  };
}

function carriesSecret({ method, path }: KubeRequest): boolean {
  return method !== "GET" && method !== "DELETE" && secretPath.test(path);
}
