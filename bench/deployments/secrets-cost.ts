// Measures how long a pod waits for its secrets, and what that costs an agent on a real cluster: real tokens, and pods of one
// deployment that keep asking.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { generateMasterKey } from "../../src/vault/master-keys.ts";
import { createFileStorage } from "../../src/vault/storage/file-storage.ts";
import { requestApi } from "../../test/support/cluster/api-request.ts";
import { eventually } from "../../test/support/eventually.ts";
import { createTestVault } from "../../test/support/vault-fixture.ts";
import { SecretsCallers } from "../secrets-callers.ts";
import { percentile } from "../statistics.ts";
import type { AgentProcess, AgentVault } from "./agent-process.ts";
import { type BenchRegion, regionName } from "./bench-region.ts";
import { type SampleSet, sampleDeployment } from "./sample-set.ts";

export interface SecretsCost {
  readonly p50Ms: number;
  /** Of the agent, for a thousand calls. */
  readonly cpuSeconds: number;
}

interface ApiPod {
  readonly metadata: { readonly name: string; readonly uid: string };
}

const pods = 60;
const callers = 8;
const alone = 600;
const crowd = 960;
const variables = Array.from({ length: 20 }, (_, index) => `VARIABLE_${index}`);

/** A vault in a folder that is removed afterwards. */
export async function withVault<T>(work: (vault: AgentVault) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "krane-bench-vault-"));
  try {
    const masterKey = generateMasterKey(createSystemClock().wallMs());
    return await work({ folder, masterKey });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export async function measureSecrets(
  region: BenchRegion,
  agent: AgentProcess,
  set: SampleSet,
  vault: AgentVault,
): Promise<SecretsCost> {
  const message = sampleDeployment(set, set.deployments, { replicas: pods });
  const { deploymentId, environmentId, k8sNamespace: namespace } = message;
  const encryptedBlob = await encrypt(vault, environmentId, region.signal);
  await region.admin.setDeployment(regionName, message);
  const tokens = await tokensOf(region, namespace, deploymentId);
  const bodies = tokens.map((token) => JSON.stringify({ encryptedBlob, deploymentId, environmentId, token }));
  const client = new SecretsCallers({ url: agent.url, bodies, variables: variables.length, callers });
  await client.inTurn(pods, region.signal);
  const latenciesMs = await client.inTurn(alone, region.signal);
  const before = agent.cpuSeconds();
  await client.together(crowd, region.signal);
  const cpuSeconds = ((agent.cpuSeconds() - before) / crowd) * 1_000;
  return { p50Ms: percentile(latenciesMs, 50), cpuSeconds };
}

/** Base64 of the blob, in the format that every version reads. */
async function encrypt({ folder, masterKey }: AgentVault, keyring: string, signal: AbortSignal) {
  const clock = createSystemClock();
  const storage = createFileStorage(folder, { clock });
  const vault = createTestVault({ storage, keys: [masterKey], clock, format: "original" });
  const secrets: Record<string, string> = {};
  for (const name of variables)
    secrets[name] = (await vault.encrypt({ keyring, data: `value of ${name}` }, signal)).encrypted;
  await vault.close();
  return Buffer.from(JSON.stringify({ secrets })).toString("base64");
}

/** As the kubelet gets them for the projected volumes. */
async function tokensOf({ cluster, signal }: BenchRegion, namespace: string, deploymentId: string) {
  const folder = `/api/v1/namespaces/${namespace}`;
  const label = encodeURIComponent(`unkey.com/deployment.id=${deploymentId}`);
  const probe = async () => {
    const { body } = await requestApi(cluster, { path: `${folder}/pods?labelSelector=${label}` });
    const { items } = body as { readonly items: readonly ApiPod[] };
    if (items.length !== pods) throw new Error(`${items.length} of ${pods} pods are there`);
    return items;
  };
  const found = await eventually("its pods are there", probe, { signal });
  const tokens: string[] = [];
  for (const { metadata } of found) {
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: metadata.name, uid: metadata.uid };
    const spec = { audiences: ["krane"], expirationSeconds: 3_600, boundObjectRef };
    const path = `${folder}/serviceaccounts/default/token`;
    const { status, body } = await requestApi(cluster, { method: "POST", path, body: { spec } });
    if (status !== 201) throw new Error(`no token: the API server returned ${status}`);
    tokens.push((body as { readonly status: { readonly token: string } }).status.token);
  }
  return tokens;
}
