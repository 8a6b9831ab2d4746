// One plain request to the API server, for tests that look at status codes and
// bodies. It shares no code with krane's own client, so that it can judge it.

import { type Agent, request } from "node:https";
import type { ClusterFacts } from "./facts.ts";

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  /** Default: the administrator. */
  readonly token?: string;
  /** Keeps connections; for thousands of requests. */
  readonly agent?: Agent;
}

export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
}

const timeoutMs = 30_000;

export function requestApi(
  facts: Pick<ClusterFacts, "serverUrl" | "ca" | "adminToken">,
  asked: ApiRequest,
): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(asked.path, facts.serverUrl),
      {
        method: asked.method ?? "GET",
        ca: facts.ca,
        agent: asked.agent ?? false,
        timeout: timeoutMs,
        headers: {
          authorization: `Bearer ${asked.token ?? facts.adminToken}`,
          accept: "application/json",
          "content-type": asked.contentType ?? "application/json",
        },
      },
      (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        incoming.on("error", reject);
        incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, body: parseBody(text) }));
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    outgoing.on("error", reject);
    outgoing.end(asked.body === undefined ? undefined : JSON.stringify(asked.body));
  });
}

/** Health endpoints answer in plain text. */
function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
