// The servers that a controller needs, in one process: the embedded Kubernetes API server over HTTP and a control plane
// over h2c. Nothing creates pods.
import type { Interceptor } from "@connectrpc/connect";
import { type ApiServer, administrator, createApiServer, startHttpServer } from "@krane/kube-apiserver";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { Secret } from "../../src/config/secret.ts";
import { ciliumDefinition } from "../../src/dev/cilium-definition.ts";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { customResourceDefinitions } from "../../src/kube/resources.ts";
import { createControlPlaneServer } from "../../src/server/control-plane-server.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createTestPlane, type TestPlane } from "../../test/support/store-admin.ts";

export const regionKey = { name: "bench", platform: "local", label: "bench.local" } as const;
export const controlToken = "bench-token";

/** The addresses that a controller connects to. */
export interface Addresses {
  readonly kubernetes: string;
  readonly controlPlane: string;
}

export interface Servers {
  readonly addresses: Addresses;
  readonly server: ApiServer;
  /** Without a socket. */
  readonly api: KubeApi;
  readonly plane: TestPlane;
  stop(): Promise<void>;
}

export async function startServers(
  interceptors: readonly Interceptor[],
  signal: AbortSignal,
): Promise<Servers> {
  const deps = {
    clock: createSystemClock(),
    random: createSeededRandom(1),
    log: createQuietLog(),
    readTextFile: () => Promise.reject(new Error("no file is needed")),
  };
  const server = createApiServer(deps);
  const api = createKubeApi(createInProcessTransport(server));
  await api.create(customResourceDefinitions, ciliumDefinition, {}, signal);
  const http = await startHttpServer(server, { anonymous: administrator });
  const plane = createTestPlane({ tokens: [new Secret(controlToken)], interceptors }, deps);
  await plane.admin.registerRegion(regionKey.label);
  const control = await createControlPlaneServer(plane, { port: 0 }, deps).start(signal);
  return {
    addresses: { kubernetes: http.url, controlPlane: control.url },
    server,
    api,
    plane,
    async stop() {
      await control.close(AbortSignal.abort());
      await http.stop();
      server.stop();
    },
  };
}
