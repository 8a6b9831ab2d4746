// Pods ask agents for secrets (K7): honest ones for their own, thieves for those of another environment, or with the token
// of a pod that is gone.
import { SecretsService } from "../src/gen/krane/v1/secrets_pb.ts";
import { labelKeys } from "../src/model/labels.ts";
import type { Choices } from "./choices.ts";
import { pick } from "./people.ts";
import { namespaces } from "./places.ts";
import type { SimAgent } from "./sim-agent.ts";
import type { LiveObject } from "./sim-cluster.ts";
import { canary } from "./sim-vault.ts";
import type { World } from "./world.ts";

interface Request {
  readonly token: string;
  /** Whose secrets it asks for, and by whose ciphertext. */
  readonly environmentId: string;
  readonly encryptedFor: string;
}

/** Sometimes the pod asks long after it got its token. */
export async function askForSecrets(world: World, choices: Choices): Promise<void> {
  const pod = pick(world, choices, "pods");
  const agent = choices.one(world.agents);
  if (pod === undefined) return;
  const own = environmentOf(pod);
  const encryptedFor = choices.chance(0.5) ? own : `env_${choices.one(namespaces)}${choices.index(2)}`;
  const environmentId = choices.chance(0.5) ? own : encryptedFor;
  const token = await tokenOf(world, pod);
  if (token === undefined) return;
  const ask = () => void askAndJudge(world, agent, pod, { token, environmentId, encryptedFor });
  if (choices.chance(0.5)) ask();
  else world.clock.setTimer(choices.between(500, 120_000), ask);
}

async function askAndJudge(world: World, agent: SimAgent, pod: LiveObject, request: Request): Promise<void> {
  const { name, namespace = "", uid } = pod.metadata;
  const live = world.cluster.get("pods", "", namespace, name ?? "")?.metadata;
  const isLive = live?.uid === uid && live?.deletionTimestamp === undefined;
  const secrets = await send(world, agent, pod, request);
  world.trace.add("pod", `${name} got ${secrets === undefined ? "no secrets" : "secrets"}`);
  if (secrets === undefined) return;
  const why = wrongnessOf(world, pod, request, isLive);
  if (why !== undefined) world.violate("K7", `pod ${name} got ${JSON.stringify(secrets)} ${why}`);
}

function wrongnessOf(
  world: World,
  pod: LiveObject,
  { encryptedFor }: Request,
  isLive: boolean,
): string | undefined {
  if (encryptedFor !== environmentOf(pod)) return "of another environment";
  if (!world.isTenantPod(pod)) return "although no agent made its ReplicaSet";
  return isLive ? undefined : "although it was gone";
}

/** Whether the agent gives the pod its own secrets. */
export async function getsItsSecrets(world: World, agent: SimAgent, pod: LiveObject): Promise<boolean> {
  const token = (await tokenOf(world, pod)) ?? "";
  const environmentId = environmentOf(pod);
  const request = { token, environmentId, encryptedFor: environmentId };
  return (await send(world, agent, pod, request)) !== undefined;
}

/** The secrets that the pod gets; undefined if it gets none. */
async function send(world: World, agent: SimAgent, pod: LiveObject, request: Request): Promise<unknown> {
  const { token, environmentId, encryptedFor } = request;
  const deploymentId = pod.metadata.labels?.[labelKeys.deploymentId] ?? "";
  const encryptedBlob = world.vault.blobOf(encryptedFor, `${canary}${encryptedFor}`);
  try {
    const response = await agent
      .client(SecretsService)
      ?.decryptSecretsBlob({ token, environmentId, deploymentId, encryptedBlob });
    return response?.envVars;
  } catch {
    return undefined;
  }
}

function environmentOf({ metadata: { labels } }: LiveObject): string {
  return labels?.[labelKeys.environmentId] ?? "";
}

async function tokenOf(
  world: World,
  { metadata: { name, namespace, uid } }: LiveObject,
): Promise<string | undefined> {
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { audiences: ["krane"], expirationSeconds: 600, boundObjectRef },
  };
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`;
  const response = await world.cluster.kubectl({
    method: "POST",
    path,
    contentType: "application/json",
    body,
  });
  return (response.body as { status?: { token?: string } }).status?.token;
}
