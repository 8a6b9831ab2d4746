// The embedded API server as a target: a whole cluster in this process, reached by direct calls
// or over HTTP. The contract takes real time, so the cluster runs on the system's clock.
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import {
  type ApiServer,
  administrator,
  createApiServer,
} from "../../../src/dev/kube-apiserver/api-server.ts";
import { createFixture } from "../../../src/dev/kube-apiserver/controllers/cluster-fixture.ts";
import { startControllers } from "../../../src/dev/kube-apiserver/controllers/start-controllers.ts";
import { startHttpServer } from "../../../src/dev/kube-apiserver/http-server.ts";
import { createInProcessTransport } from "../../../src/dev/kube-apiserver/in-process.ts";
import { createKubeApi } from "../../../src/kube/client.ts";
import { fixedCredential } from "../../../src/kube/credentials.ts";
import { createHttpTransport } from "../../../src/kube/http-transport.ts";
import { namespaces } from "../../../src/kube/resources.ts";
import type { KubeTransport } from "../../../src/kube/transport.ts";
import type { ContractTarget } from "../target.ts";

const token = "token-of-an-administrator";
const clock = createSystemClock();

export async function startInProcessTarget(): Promise<ContractTarget> {
  const cluster = await startCluster();
  const transport = createInProcessTransport(cluster.server, { userAgent: "krane" });
  return targetOf("embedded server, in process", cluster, transport, () => transport.close());
}

export async function startHttpTarget(): Promise<ContractTarget> {
  const cluster = await startCluster();
  const http = await startHttpServer(cluster.server);
  const credentials = fixedCredential({ authorization: `Bearer ${token}` });
  const transport = createHttpTransport(
    { endpoint: { server: http.url, credentials }, connections: 16 },
    { clock },
  );
  return targetOf("embedded server, over HTTP", cluster, transport, async () => {
    await transport.close();
    await http.stop();
  });
}

interface EmbeddedCluster {
  readonly server: ApiServer;
  stop(): Promise<void>;
}

async function startCluster(): Promise<EmbeddedCluster> {
  const random = createSeededRandom(1);
  const server = createApiServer({ clock, random }, { staticTokens: new Map([[token, administrator]]) });
  const transport = createInProcessTransport(server);
  const stopping = new AbortController();
  await createFixture(transport, stopping.signal);
  // No case is about how long a pod takes.
  const behaviour = { pullMs: 0, startMs: 0, readyMs: 0, stopMs: 0 };
  const controllers = startControllers(transport, { behaviour }, { clock, random }, stopping.signal);
  // A server that has been up for a while remembers nothing of its first moments.
  server.faults.compact();
  return {
    server,
    async stop() {
      stopping.abort();
      await controllers.done;
      server.stop();
      await transport.close();
    },
  };
}

function targetOf(
  name: string,
  { server, stop }: EmbeddedCluster,
  transport: KubeTransport,
  disconnect: () => Promise<void>,
): ContractTarget {
  const api = createKubeApi(transport, { mayQuoteSecrets: true });
  return {
    name,
    api,
    transport,
    async removeNamespace(namespace) {
      await api.delete(namespaces, { name: namespace }, {}, new AbortController().signal);
    },
    compactHistory: async () => server.faults.compact(),
    async close() {
      await disconnect();
      await stop();
    },
  };
}
