// The embedded API server as a target: a whole cluster in this process, reached by direct calls
// or over HTTP. The contract takes real time, so the cluster runs on the system's clock.
import { type ApiServer, administrator, createApiServer } from "../../../src/api-server.ts";
import { systemDeps } from "../../../src/clock.ts";
import { createNodes } from "../../../src/controllers/nodes.ts";
import { startControllers } from "../../../src/controllers/start-controllers.ts";
import { type ApiHandler, createHandler } from "../../../src/handler.ts";
import { startHttpServer } from "../../../src/http-server.ts";
import { createSeededRandom } from "../../../src/testing.ts";
import type { ContractTransport } from "../api.ts";
import { createContractApi } from "../client.ts";
import { namespaces } from "../fixtures.ts";
import type { ContractTarget } from "../target.ts";
import { createHttpTransport } from "./http-transport.ts";

export const adminToken = "token-of-an-administrator";
const userAgent = "contract";

export async function startInProcessTarget(): Promise<ContractTarget> {
  const cluster = await startCluster();
  const transport = createInProcessTransport(createHandler(cluster.server, { userAgent }));
  return targetOf("embedded server, in process", cluster, transport, () => cluster.stop());
}

export async function startHttpTarget(): Promise<ContractTarget & { readonly url: string }> {
  const cluster = await startCluster();
  const http = await startHttpServer(cluster.server);
  const transport = createHttpTransport(http.url, adminToken, userAgent);
  const target = targetOf("embedded server, over HTTP", cluster, transport, async () => {
    await http.stop();
    await cluster.stop();
  });
  return { ...target, url: http.url };
}

export interface EmbeddedCluster {
  readonly server: ApiServer;
  stop(): Promise<void>;
}

async function startCluster(): Promise<EmbeddedCluster> {
  const deps = { ...systemDeps(), random: createSeededRandom(1) };
  const server = createApiServer(deps, { staticTokens: new Map([[adminToken, administrator]]) });
  const handler = createHandler(server);
  const stopping = new AbortController();
  await createNodes(handler, stopping.signal);
  // No case is about how long a pod takes.
  const behaviour = { pullMs: 0, startMs: 0, readyMs: 0, stopMs: 0 };
  const controllers = startControllers(handler, { behaviour }, deps, stopping.signal);
  // A server that has been up for a while remembers nothing of its first moments.
  server.faults.compact();
  return {
    server,
    async stop() {
      stopping.abort();
      await controllers.done;
      server.stop();
    },
  };
}

function createInProcessTransport(handler: ApiHandler): ContractTransport {
  return {
    async send(request, signal) {
      const answer = await handler(request, signal);
      if (answer.kind === "whole") return answer;
      answer.close();
      throw new Error(`${request.path} answered with a stream`);
    },
    async stream(request, signal) {
      const answer = await handler(request, signal);
      return answer.kind === "stream" ? { values: answer.values } : { refusal: answer, values: nothing() };
    },
  };
}

async function* nothing(): AsyncGenerator<never> {
  // A refused watch has no events.
}

function targetOf(
  name: string,
  { server }: EmbeddedCluster,
  transport: ContractTransport,
  close: () => Promise<void>,
): ContractTarget {
  const api = createContractApi(transport);
  return {
    name,
    api,
    transport,
    userAgent,
    async removeNamespace(namespace) {
      await api.delete(namespaces, { name: namespace }, {}, new AbortController().signal);
    },
    compactHistory: async () => server.faults.compact(),
    close,
  };
}
