// The smallest clients of both versions of HTTP: one request, the whole answer.
import { once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type SecureClientSessionOptions,
} from "node:http2";
import { request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface FetchOptions {
  readonly method?: string;
  /** The only certificate to trust; for https addresses. */
  readonly ca?: string;
}

/** One HTTP/1.1 request on a connection of its own. */
export async function fetchHttp1(url: string, options: FetchOptions = {}): Promise<Answer> {
  const send = url.startsWith("https:") ? httpsRequest : httpRequest;
  const request = send(url, { method: options.method ?? "GET", agent: false, ca: options.ca });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
}

/** A connected session; with http:// it begins with the preface at once ("prior knowledge"). */
export async function openHttp2(
  origin: string,
  options: SecureClientSessionOptions = {},
): Promise<ClientHttp2Session> {
  const session = connectHttp2(origin, options);
  await once(session, "connect");
  return session;
}

export async function requestHttp2(
  session: ClientHttp2Session,
  path: string,
  method = "GET",
): Promise<Answer> {
  const stream = session.request({ ":path": path, ":method": method });
  stream.end();
  const headers = await new Promise<IncomingHttpHeaders & { ":status"?: number }>((resolve, reject) => {
    stream.once("response", resolve);
    stream.once("error", reject);
    // A session that is cut closes its streams without an error.
    stream.once("close", () => reject(new Error(`no response to ${method} ${path}`)));
  });
  return { status: headers[":status"] ?? 0, headers, body: await text(stream) };
}

/** One HTTP/2 request on a session of its own. */
export async function fetchHttp2(url: string, options: FetchOptions = {}): Promise<Answer> {
  const { origin, pathname } = new URL(url);
  const session = await openHttp2(origin, options.ca === undefined ? {} : { ca: options.ca });
  try {
    return await requestHttp2(session, pathname, options.method);
  } finally {
    session.close();
  }
}
