// Secrets from end to end on a real Kubernetes: streamed from a control plane, applied by the agent as it ships,
// with the roles of an install and no others, and read back in clear by whoever holds the token of the pod.
// The clients share nothing with krane: curl, grpc-js and grpcurl.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { createFileStorage } from "../../src/vault/storage/file-storage.ts";
import { agentToken } from "../integration/agent/agent-world.ts";
import { grpcClient } from "../integration/scheduler/grpc-client.ts";
import {
  token as controlToken,
  dev as region,
  serveControlPlane,
} from "../integration/server/served-control-plane.ts";
import { startAgentProcess } from "../support/agent-process.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { applyDeployment, utf8 } from "../support/deployment-messages.ts";
import { grpcurlMissing, runGrpcurl } from "../support/grpcurl.ts";
import { buildKrane } from "../support/krane-process.ts";
import { SecretSeekers } from "../support/secret-seekers.ts";
import { createTestVault } from "../support/vault-fixture.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;
const service = "krane.v1.SecretsService";
const variables = { PASSWORD: 'a "quoted"\nsecond line', EMPTY: "" };
const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";

let krane: Awaited<ReturnType<typeof buildKrane>>;
let account: ServiceAccountAccess;
before(async () => {
  krane = await buildKrane();
  await cluster.empty();
  account = await installRights(cluster, ["agent", "secrets"]);
});
after(async () => {
  await account.remove();
  await krane.remove();
});

const transport = createHttpTransport(
  {
    endpoint: {
      server: cluster.serverUrl,
      ca: cluster.ca,
      credentials: fixedCredential({ authorization: `Bearer ${cluster.adminToken}` }),
    },
    connections: 4,
  },
  { clock: createSystemClock() },
);
after(() => transport.close());

/** A pod whose deployment came by the stream, its token as a kubelet gets it, and what it asks with. */
async function createPod(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const clock = createSystemClock();
  const vault = createTestVault({ storage: createFileStorage(folder, { clock }), keys: [masterKey], clock });
  // Its cache would keep the process alive.
  t.after(() => vault.close());
  const { admin, running } = await serveControlPlane(t, "h2c");
  const agent = await startAgentProcess(
    t,
    {
      program: krane.program,
      region,
      controlPlane: { url: running?.url ?? assert.fail("it is not served"), token: controlToken },
      kubeconfigPath: account.kubeconfigPath,
      agentToken,
    },
    { UNKEY_VAULT_MASTER_KEYS: masterKey, UNKEY_VAULT_FILE_PATH: folder },
  );
  const message = applyDeployment({ k8sName: "web", deploymentId: "d_web" });
  const { environmentId: keyring } = message;
  const encrypted: [string, string][] = [];
  for (const [context, data] of Object.entries(variables))
    encrypted.push([context, (await vault.encrypt({ keyring, data, context }, never)).encrypted]);
  const blob = utf8(JSON.stringify({ secrets: Object.fromEntries(encrypted) }));
  await admin.setDeployment(region, { ...message, encryptedEnvironmentVariables: blob });
  const seekers = new SecretSeekers(createKubeApi(transport), "acme");
  const pod = await seekers.podOf("d_web");
  const question = {
    encrypted_blob: variableOf(pod, "UNKEY_ENCRYPTED_ENV"),
    environment_id: variableOf(pod, "UNKEY_ENVIRONMENT_ID"),
    deployment_id: variableOf(pod, "UNKEY_DEPLOYMENT_ID"),
    token: await seekers.tokenOf(pod),
  };
  return { url: agent.url, question, stop: agent.stop };
}

/** What its container is started with. */
function variableOf(pod: Pod, name: string): string {
  const found = pod.spec?.containers[0]?.env?.find((variable) => variable.name === name);
  return found?.value ?? assert.fail(`the pod has no ${name}`);
}

async function askWithCurl(url: string, question: object): Promise<unknown> {
  const body = ["-H", "content-type: application/json", "-d", JSON.stringify(question)];
  const { stdout } = await promisify(execFile)("curl", [
    "-sS",
    `${url}/${service}/DecryptSecretsBlob`,
    ...body,
  ]);
  return JSON.parse(stdout);
}

test("a streamed deployment's pod gets its secrets through the agent with curl, grpc-js and grpcurl", async (t) => {
  const { url, question, stop } = await createPod(t);
  assert.deepEqual(await askWithCurl(url, question), { envVars: variables });

  const encrypted_blob = Buffer.from(question.encrypted_blob, "base64");
  const byGrpc = await grpcClient(t, url).call(service, "DecryptSecretsBlob", {
    ...question,
    encrypted_blob,
  });
  assert.deepEqual(byGrpc, { env_vars: variables });

  // The token is for one pod: whoever asks for another deployment with it learns nothing.
  const refused = await askWithCurl(url, { ...question, deployment_id: "d_other" });
  assert.equal((refused as { readonly code?: string }).code, "permission_denied");

  await t.test("grpcurl", { skip: grpcurlMissing }, async () => {
    const shown = await runGrpcurl(url, ["-d", JSON.stringify(question)], `${service}/DecryptSecretsBlob`);
    assert.deepEqual(JSON.parse(shown), { envVars: variables });
    assert.match(await runGrpcurl(url, [], "list"), /^krane\.v1\.SecretsService$/m);
  });
  await stop();
});
