// Serves secrets, as krane does or with the least work that gives the same response: a request to the API server for the
// pod and the decryption, without any checks. Both also report the CPU time that they have used.

import { createDecipheriv, createSecretKey, randomBytes } from "node:crypto";
import { Agent, get } from "node:http";
import { text } from "node:stream/consumers";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import { type HttpHandler, routeByPath, serveReads } from "../../src/http/http-handler.ts";
import { startHttpPort } from "../../src/http/http-port.ts";
import type { DesiredDeployments } from "../../src/kinds/deployment/desired-deployments.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { rpcRoutes } from "../../src/services/rpc-routes.ts";
import { createDecisionLog } from "../../src/services/secrets-decision.ts";
import {
  createSecretsService,
  secretsConnections,
  secretsServiceRoutes,
} from "../../src/services/secrets-service.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { createEmbeddedVault } from "../../src/vault/embedded-vault.ts";
import { createMasterKeySource, generateMasterKey } from "../../src/vault/master-keys.ts";
import { createMemoryStorage } from "../../src/vault/storage/memory-storage.ts";
import { takeTask, tellParent } from "./parent.ts";
import { cpuSeconds } from "./resources.ts";
import { createBenchSeal } from "./secrets-seal.ts";

export interface SecretsServerTask {
  readonly side: "krane" | "raw";
  readonly apiUrl: string;
  readonly deploymentId: string;
  readonly environmentId: string;
  readonly variables: Readonly<Record<string, string>>;
}

export interface SecretsServerFacts {
  readonly url: string;
  /** Base64 of the blob that decrypts to the variables. */
  readonly blob: string;
}

const path = "/krane.v1.SecretsService/DecryptSecretsBlob";
const task = takeTask<SecretsServerTask>();
const never = new AbortController().signal;
const clock = createSystemClock();
const log = createLog(
  {
    level: "info",
    instance: { id: "bench", region: "bench", version: "0" },
    sampling: { rate: 1, slowThresholdMs: 1_000 },
  },
  { write: () => undefined, random: { next: () => 0 }, clock },
);

const { handler, blob } = await (task.side === "krane" ? createKraneSide() : createRawSide());
const cpu = serveReads(() => ({ status: 200, contentType: "text/plain", body: String(cpuSeconds()) }));
const routes = new Map([
  [path, handler],
  ["/cpu", cpu],
]);
const portOptions = { port: 0, host: "127.0.0.1", setting: "bench" };
const portDeps = { clock, log, readTextFile: () => Promise.reject(new Error("no file")) };
const { port } = await startHttpPort(routeByPath(routes), portOptions, portDeps, never);
const facts: SecretsServerFacts = { url: `http://127.0.0.1:${port}`, blob };
tellParent(facts);

async function createKraneSide(): Promise<{ handler: HttpHandler; blob: string }> {
  const secret = new Secret(generateMasterKey(0));
  const masterKeys = createMasterKeySource({ current: async () => secret, refresh: () => undefined });
  const vault = createEmbeddedVault(
    { format: "krane" },
    { storage: createMemoryStorage(), masterKeys, clock },
  );
  const items = new Map(Object.entries(task.variables));
  const sealed = await vault.encryptBulk({ keyring: task.environmentId, items, bindItemNames: true }, never);
  const secrets = Object.fromEntries([...sealed].map(([name, { encrypted }]) => [name, encrypted]));
  const endpoint = { server: task.apiUrl, credentials: fixedCredential({}) };
  const api = createKubeApi(createHttpTransport({ endpoint, connections: secretsConnections }, { clock }));
  const metrics = createMetrics({ version: "0", revision: "bench", nodeVersion: process.version });
  const { deploymentId, environmentId } = task;
  const desired: DesiredDeployments = {
    find: (key) => (key === "acme/web" ? { kind: "wanted", deploymentId, environmentId } : undefined),
  };
  // As the stub API server has it.
  const live = { uid: "replica-set", resourceVersion: "1234567", generation: 1, hash: "" };
  const replicaSets = { watched: (key: string) => (key === "acme/web" ? live : undefined) };
  const seal = createBenchSeal();
  const audit = createDecisionLog(log);
  const deps = {
    api,
    vault,
    desired,
    replicaSets,
    clock,
    log,
    metrics,
    audit,
    seal: () => seal,
    mayBeOriginal: () => false,
  };
  const service = createSecretsService({ audience: "krane", acceptDefaultAudience: false }, deps);
  const handler = rpcRoutes(secretsServiceRoutes(() => service, deps)).get(path);
  if (handler === undefined) throw new Error("the service is not served");
  return { handler, blob: base64(JSON.stringify({ secrets })) };
}

async function createRawSide(): Promise<{ handler: HttpHandler; blob: string }> {
  const key = createSecretKey(randomBytes(32));
  const secrets = Object.fromEntries(
    Object.entries(task.variables).map(([name, value]) => [name, base64(value.padEnd(64))]),
  );
  const agent = new Agent({ keepAlive: true, maxSockets: secretsConnections });
  const ask = async (at: string) =>
    JSON.parse(
      await new Promise<string>((resolve, reject) => {
        get(`${task.apiUrl}${at}`, { agent }, (answer) => text(answer).then(resolve, reject)).on(
          "error",
          reject,
        );
      }),
    );
  const nonce = randomBytes(12);
  const handler: HttpHandler = async (request, response) => {
    const { encryptedBlob, token } = JSON.parse(await text(request));
    await ask(`/api/v1/namespaces/acme/pods/web-${token.split(".")[2]}`);
    const items = JSON.parse(Buffer.from(encryptedBlob, "base64").toString("utf8")).secrets;
    const envVars = Object.fromEntries(
      Object.entries<string>(items).map(([name, encrypted]) => {
        // Without the tag, which would have to be valid: the work is the same.
        const opening = createDecipheriv("aes-256-gcm", key, nonce);
        return [name, opening.update(Buffer.from(encrypted, "base64")).toString("base64")];
      }),
    );
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ envVars }));
  };
  return { handler, blob: base64(JSON.stringify({ secrets })) };
}

function base64(value: string): string {
  return Buffer.from(value).toString("base64");
}
