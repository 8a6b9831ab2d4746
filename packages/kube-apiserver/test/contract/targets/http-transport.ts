// The suite's requests over HTTP, with nothing but what Node has.
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { ApiRequest } from "../../../src/request.ts";
import type { Answer, ContractTransport } from "../api.ts";

export function createHttpTransport(url: string, token: string, userAgent: string): ContractTransport {
  const ask = ({ method, path, query, contentType, accept, body }: ApiRequest, signal: AbortSignal) =>
    fetch(`${url}${path}?${new URLSearchParams(query)}`, {
      method,
      signal,
      headers: {
        authorization: `Bearer ${token}`,
        ...(contentType !== undefined && { "content-type": contentType }),
        ...(accept !== undefined && { accept }),
        "user-agent": userAgent,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  return {
    send: async (request, signal) => answerOf(await ask(request, signal)),
    async stream(request, signal) {
      const response = await ask(request, signal);
      if (response.status !== 200) return { refusal: await answerOf(response), values: nothing() };
      return { values: lines(response) };
    },
  };
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  const wait = response.headers.get("retry-after");
  return {
    status: response.status,
    body: isJson ? JSON.parse(text) : text,
    ...(wait !== null && { retryAfterSeconds: Number(wait) }),
  };
}

async function* lines({ body }: Response): AsyncGenerator<unknown> {
  if (body === null) return;
  let rest = "";
  for await (const text of Readable.fromWeb(body as ReadableStream).setEncoding("utf8")) {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) yield JSON.parse(line);
  }
}

async function* nothing(): AsyncGenerator<never> {
  // A refused watch has no events.
}
