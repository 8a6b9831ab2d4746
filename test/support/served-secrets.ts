// SecretsService on a port of its own, with a vault that a test can see through.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { SecretsService } from "../../src/gen/krane/v1/secrets_pb.ts";
import { routeByPath } from "../../src/http/http-handler.ts";
import { startHttpPort } from "../../src/http/http-port.ts";
import type { DesiredDeployments } from "../../src/kinds/deployment/desired-deployments.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { rpcRoutes } from "../../src/services/rpc-routes.ts";
import type { SecretsDecision } from "../../src/services/secrets-decision.ts";
import {
  createSecretsService,
  type SecretsServiceOptions,
  secretsServiceRoutes,
} from "../../src/services/secrets-service.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { Vault } from "../../src/vault/vault.ts";
import { undecryptable } from "../../src/vault/vault-error.ts";
import { utf8 } from "./deployment-messages.ts";
import { createListedKubeApi } from "./listed-calls.ts";
import { createQuietLog } from "./quiet-log.ts";
import { testSeal } from "./test-seal.ts";

export const audience = "krane";
const never = new AbortController().signal;

/** Opens what `sealed` closed, under the same keyring only. */
export const glassVault: Pick<Vault, "decryptBulk"> = {
  async decryptBulk({ keyring, items }) {
    return new Map(
      [...items].map(([name, encrypted]) => {
        const { ring, value } = JSON.parse(Buffer.from(encrypted, "base64").toString("utf8"));
        if (ring !== keyring) throw undecryptable(name);
        return [name, value] as const;
      }),
    );
  },
};

/** A blob of variables as the control plane sends it. */
export function sealedBlob(
  ring: string,
  variables: Readonly<Record<string, string>>,
): Uint8Array<ArrayBuffer> {
  const secrets = Object.entries(variables).map(([name, value]) => [
    name,
    Buffer.from(JSON.stringify({ ring, value })).toString("base64"),
  ]);
  return utf8(JSON.stringify({ secrets: Object.fromEntries(secrets) }));
}

export interface ServedSecrets {
  readonly url: string;
  /** All decisions so far. */
  readonly decisions: SecretsDecision[];
  /** How often the vault was asked to decrypt. */
  decryptions(): number;
  readonly client: ReturnType<typeof createClient<typeof SecretsService>>;
  metrics(): Promise<string>;
}

export async function serveSecrets(
  t: TestContext,
  api: KubeApi,
  desired: DesiredDeployments,
  options: Partial<SecretsServiceOptions> & {
    readonly vault?: Pick<Vault, "decryptBulk">;
    readonly port?: number;
  } = {},
): Promise<ServedSecrets> {
  const { vault = glassVault, port = 0, ...service } = options;
  const decisions: SecretsDecision[] = [];
  let decryptions = 0;
  const countingVault: typeof vault = {
    decryptBulk(...asked) {
      decryptions += 1;
      return vault.decryptBulk(...asked);
    },
  };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const listed = createListedKubeApi(api, ["secrets"]);
  t.after(() => assert.deepEqual(listed.unlisted, []));
  const deps = {
    api: listed,
    desired,
    replicaSets: { watched: () => undefined },
    seal: () => testSeal,
    mayBeOriginal: () => true,
    vault: countingVault,
    clock: createSystemClock(),
    log: createQuietLog(),
    metrics,
    audit: (decision: SecretsDecision) => void decisions.push(decision),
  };
  const running = createSecretsService({ audience, acceptDefaultAudience: false, ...service }, deps);
  const routes = rpcRoutes(secretsServiceRoutes(() => running, deps));
  const portDeps = { ...deps, readTextFile: () => Promise.reject(new Error("no file is needed")) };
  const where = { port, host: "127.0.0.1", setting: "test" };
  const listening = await startHttpPort(routeByPath(routes), where, portDeps, never);
  t.after(() => listening.stop(AbortSignal.abort()));
  const url = `http://127.0.0.1:${listening.port}`;
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  return {
    url,
    decisions,
    decryptions: () => decryptions,
    client: createClient(SecretsService, transport),
    metrics: () => metrics.render(),
  };
}
