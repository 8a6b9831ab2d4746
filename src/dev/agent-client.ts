// Reads the agent's state through AgentService on its RPC port, with its token. So `krane dev` shows nothing that
// a production agent would not report too.
import { createClient, type Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { createHttpLink } from "../control-plane/transport.ts";
import { AgentService, type AgentStatus, type ObjectStatus } from "../gen/krane/v1/agent_pb.ts";

export interface AgentClient {
  status(signal: AbortSignal): Promise<AgentStatus | undefined>;
  objects(signal: AbortSignal): Promise<readonly ObjectStatus[]>;
  close(): Promise<void>;
}

// A demo has a few objects; of thousands, only the first are shown.
const pagesMax = 10;
const timeoutMs = 5_000;

export function createAgentClient(baseUrl: string, token: string, clock: Clock): AgentClient {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const link = createHttpLink({ baseUrl, interceptors: [authorize] }, clock);
  const client = createClient(AgentService, link.transport);
  return {
    status: async (signal) => (await client.getStatus({}, { signal, timeoutMs })).status,
    async objects(signal) {
      const objects: ObjectStatus[] = [];
      let pageToken = "";
      for (let pages = 0; pages < pagesMax; pages++) {
        const page = await client.listObjects({ pageToken }, { signal, timeoutMs });
        objects.push(...page.objects);
        pageToken = page.nextPageToken;
        if (pageToken === "") break;
      }
      return objects;
    },
    close: () => link.close(),
  };
}
