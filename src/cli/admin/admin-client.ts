// The client of the admin API: Connect over HTTP/1.1, which every proxy and load balancer supports, with a token and a
// deadline on every call.
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport } from "@connectrpc/connect-node";
import type { Secret } from "../../config/secret.ts";
import { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";

export type AdminClient = Client<typeof AdminService>;

export interface AdminClientOptions {
  readonly url: string;
  readonly token: Secret;
  /** PEM certificates to trust instead of the system's. */
  readonly ca: string | undefined;
}

const callTimeoutMs = 10_000;
/** For a stream, which has no deadline: `client.watchEvents(request, { signal, ...endless })`. */
export const endless = { timeoutMs: 0 } as const;
// Enough for a page of objects with large policies.
const messageBytesMax = 32 * 1024 * 1024;

export function createAdminClient({ url, token, ca }: AdminClientOptions): {
  readonly client: AdminClient;
  close(): void;
} {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("Authorization", `Bearer ${token.reveal()}`);
    return next(request);
  };
  const agent = url.startsWith("https:")
    ? new HttpsAgent({ keepAlive: true, ...(ca === undefined ? {} : { ca }) })
    : new HttpAgent({ keepAlive: true });
  const transport = createConnectTransport({
    httpVersion: "1.1",
    baseUrl: url,
    nodeOptions: { agent },
    interceptors: [authorize],
    acceptCompression: [compressionGzip],
    defaultTimeoutMs: callTimeoutMs,
    readMaxBytes: messageBytesMax,
    writeMaxBytes: messageBytesMax,
  });
  return { client: createClient(AdminService, transport), close: () => agent.destroy() };
}
