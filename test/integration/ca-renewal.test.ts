// Those whom krane speaks TLS to get certificates of a new CA, and the file that krane trusts is replaced: no
// restart is needed. Everything is real but the time.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadControlPlane } from "../../src/agent/control-plane-access.ts";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { VaultService } from "../../src/gen/vault/v1/service_pb.ts";
import { jsonResponse, routeByPath, serveReads } from "../../src/http/http-handler.ts";
import { startHttpPort } from "../../src/http/http-port.ts";
import { loadKubeEndpoint } from "../../src/kube/endpoint.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { serviceAccountDir } from "../../src/kube/in-cluster.ts";
import { rpcRoutes } from "../../src/services/rpc-routes.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { createVault } from "../../src/vault/create-vault.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { agentDeps, parse } from "./agent/agent-world.ts";

const { signal } = new AbortController();
const testFile = (name: string) =>
  readFile(fileURLToPath(new URL(`../../testdata/tls/${name}`, import.meta.url)), "utf8");

const routes = new Map([
  ...rpcRoutes((router) => {
    router.service(ClusterService, { heartbeat: () => ({}) });
    router.service(VaultService, { encrypt: () => ({ encrypted: "x", keyId: "dek_x" }) });
  }),
  ["/version", serveReads(() => jsonResponse(200, {}))] as const,
]);

/** A server with this certificate, and with the place of the one before where there was one. */
async function serve(t: TestContext, name: "first" | "second", port = 0) {
  const deps = { clock: createSystemClock(), log: createQuietLog(), readTextFile: testFile };
  const tls = { certFile: `${name}.cert.pem`, keyFile: `${name}.key.pem` };
  const server = await startHttpPort(routeByPath(routes), { port, setting: "port", tls }, deps, signal);
  t.after(() => server.stop(AbortSignal.abort()));
  return server;
}

interface Client {
  ask(): Promise<unknown>;
  close(): Promise<void>;
}

type Connect = (port: number, deps: ReturnType<typeof agentDeps>) => Promise<Client>;

const connects: Record<string, { readonly caFile: string; readonly connect: Connect }> = {
  "the control plane": {
    caFile: "ca.pem",
    async connect(port, deps) {
      const config = parse(
        `region = "r.test"\n[control]\nurl = "https://localhost:${port}"\ntoken = "t"\nca_file = "ca.pem"`,
      );
      const metrics = createMetrics(deps.build);
      const plane = await loadControlPlane(config, "agent", { ...deps, metrics }, signal);
      return { ask: () => plane.heartbeat(signal), close: () => plane.close() };
    },
  },
  "the vault": {
    caFile: "ca.pem",
    async connect(port, deps) {
      const { vault: config } = parse(
        `region = "r.test"\n[control]\nurl = "http://localhost"\ntoken = "t"\n[vault]\nurl = "https://localhost:${port}"\ntoken = "t"\nca_file = "ca.pem"`,
      );
      const vault = (await createVault(config, deps, signal)) ?? assert.fail("there is no vault");
      return { ask: () => vault.encrypt({ keyring: "e", data: "x" }, signal), close: () => vault.close() };
    },
  },
  "the API server, from within a pod": {
    caFile: `${serviceAccountDir}/ca.crt`,
    async connect(port, deps) {
      const env = { KUBERNETES_SERVICE_HOST: "localhost", KUBERNETES_SERVICE_PORT: String(port) };
      const endpoint = await loadKubeEndpoint({ env }, deps, signal);
      const transport = createHttpTransport({ endpoint, connections: 1 }, deps);
      return {
        ask: () => transport.send({ method: "GET", path: "/version" }, signal),
        close: () => transport.close(),
      };
    },
  },
  "the API server of a kubeconfig with a file": {
    caFile: "/etc/kube/ca.pem",
    async connect(port, deps) {
      const kubeconfig = "/etc/kube/config";
      const readTextFile: typeof deps.readTextFile = async (path, inner) =>
        path === kubeconfig
          ? JSON.stringify({
              "current-context": "c",
              contexts: [{ name: "c", context: { cluster: "k" } }],
              clusters: [
                {
                  name: "k",
                  cluster: { server: `https://localhost:${port}`, "certificate-authority": "ca.pem" },
                },
              ],
            })
          : deps.readTextFile(path, inner);
      const endpoint = await loadKubeEndpoint({ kubeconfig, env: {} }, { ...deps, readTextFile }, signal);
      const transport = createHttpTransport({ endpoint, connections: 1 }, deps);
      return {
        ask: () => transport.send({ method: "GET", path: "/version" }, signal),
        close: () => transport.close(),
      };
    },
  },
};

for (const [name, { caFile, connect }] of Object.entries(connects))
  test(`a new CA of ${name} is trusted as soon as it stands in the file`, async (t) => {
    const clock = new FakeClock();
    const files = { [caFile]: await testFile("first.cert.pem"), [`${serviceAccountDir}/token`]: "t" };
    const old = await serve(t, "first");
    const client = await connect(old.port, { ...agentDeps(files), clock });
    t.after(() => client.close());
    await client.ask();

    await old.stop(AbortSignal.abort());
    await serve(t, "second", old.port);
    await eventually("the new certificate is met", () => assert.rejects(client.ask()));
    files[caFile] = await testFile("second.cert.pem");
    await clock.advance(60_000);
    await eventually("the new CA is trusted", () => client.ask(), { deadlineMs: 10_000 });
  });
