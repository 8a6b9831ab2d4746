// A whole agent gives secrets only for what it was told to run, also after a restart, whatever somebody else wrote
// in its name into the cluster.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import type { ApplyDeployment } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { ApplyDeploymentRequestSchema, SchedulerService } from "../../../src/gen/krane/v1/scheduler_pb.ts";
import { SecretsService } from "../../../src/gen/krane/v1/secrets_pb.ts";
import { namespaces, replicaSets } from "../../../src/kube/resources.ts";
import { createFileStorage } from "../../../src/vault/storage/file-storage.ts";
import { utf8 } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { forgedOrder } from "../../support/forged-order.ts";
import { replicaSetOfOlderAgent } from "../../support/older-agent.ts";
import { environmentId, SecretSeekers } from "../../support/secret-seekers.ts";
import { createTestVault } from "../../support/vault-fixture.ts";
import { schedulerToken, withScheduler } from "../scheduler/scheduler-world.ts";
import { agentClient, createAgentWorld, type RunningAgent, region } from "./agent-world.ts";

const never = new AbortController().signal;
const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";
const password = "s3cret of the victim";

async function createWorld(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true }));
  const clock = createSystemClock();
  const vault = createTestVault({ storage: createFileStorage(folder, { clock }), keys: [masterKey], clock });
  t.after(() => vault.close());
  const sealed = await vault.encrypt({ keyring: environmentId, data: password, context: "PASSWORD" }, never);
  const blob = utf8(JSON.stringify({ secrets: { PASSWORD: sealed.encrypted } }));
  const world = await createAgentWorld(t);
  const { api } = world.cluster;
  await api.create(namespaces, { metadata: { name: "thieves" } }, {}, never);
  const more = `${withScheduler}[vault]\nmaster_keys = ["${masterKey}"]\n[vault.file]\npath = "${folder}"\n`;
  return {
    ...world,
    startAgent: () => world.startAgent(more),
    seekers: new SecretSeekers(api, "acme"),
    thief: new SecretSeekers(api, "thieves"),
    /** What somebody with the token of this pod gets: the password, or the code of the error. */
    async ask(
      { url }: RunningAgent,
      seekers: SecretSeekers,
      pod: Pod,
      deploymentId: string,
      asked: { readonly environmentId: string; readonly audiences?: readonly string[] } = { environmentId },
    ) {
      const client = createClient(
        SecretsService,
        createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
      );
      const token = await seekers.tokenOf(pod, asked.audiences);
      const call = { token, deploymentId, environmentId: asked.environmentId, encryptedBlob: blob };
      return client.decryptSecretsBlob(call).then(
        ({ envVars }) => envVars["PASSWORD"],
        (error: unknown) => ConnectError.from(error).code,
      );
    },
  };
}

test("a pod of the original is told to retry while desired state does not name its ReplicaSet", async (t) => {
  const { cluster, startAgent, thief, ask } = await createWorld(t);
  const left = replicaSetOfOlderAgent(thief.namespace);
  await cluster.api.apply(replicaSets, left, { fieldManager: "krane", force: false }, never);
  const pod = await thief.podOf("d_1a2B3c4D");
  const agent = await startAgent();
  const { getStatus } = agentClient(t, agent.url);
  await eventually("the caches are complete", async () => {
    const [deployments] = (await getStatus({})).status?.controllers ?? [];
    assert.deepEqual(
      deployments?.caches.filter(({ synced }) => !synced),
      [],
    );
  });
  // The token that Kubernetes mounts itself is for the API server.
  const asked = { environmentId: "env_1a2B3c4D", audiences: [] };
  assert.equal(await ask(agent, thief, pod, "d_1a2B3c4D", asked), Code.Unavailable);
});

test("a ReplicaSet that somebody applied as krane gets nothing, with or without an order on it", async (t) => {
  const { admin, startAgent, seekers, thief, ask } = await createWorld(t);
  const agent = await startAgent();
  await admin.setDeployment(region, seekers.messageOf("victim"));
  const victim = await seekers.podOf("d_victim");
  assert.equal(await ask(agent, seekers, victim, "d_victim"), password);
  const forged = await thief.applyAsKrane(thief.specOf("victim"));
  assert.equal(await ask(agent, thief, forged, "d_victim"), Code.Unavailable);

  const ordered = await thief.applyAsKrane(
    thief.specOf("ordered"),
    forgedOrder(thief.messageOf("ordered"), 7n),
  );
  assert.equal(await ask(agent, thief, ordered, "d_ordered"), Code.Unavailable);
  await agent.stop();
  const next = await startAgent();
  await eventually("the victim gets its own again", async () =>
    assert.equal(await ask(next, seekers, victim, "d_victim"), password),
  );
  assert.equal(await ask(next, thief, forged, "d_victim"), Code.Unavailable);
  assert.equal(await ask(next, thief, ordered, "d_ordered"), Code.Unavailable);
});

test("a deployment that a call ordered gets its secrets, also after a restart", async (t) => {
  const { startAgent, seekers, ask } = await createWorld(t);
  const agent = await startAgent();
  await order(agent, seekers.messageOf("called"));
  const pod = await seekers.podOf("d_called");
  assert.equal(await ask(agent, seekers, pod, "d_called"), password);
  await agent.stop();
  const next = await startAgent();
  assert.equal(await ask(next, seekers, pod, "d_called"), password);
});

async function order({ url }: RunningAgent, message: ApplyDeployment): Promise<void> {
  const client = createClient(SchedulerService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
  const { $typeName: _, command: __, port: ___, shutdownSignal: ____, ...fields } = message;
  const headers = { authorization: `Bearer ${schedulerToken}` };
  await client.applyDeployment(create(ApplyDeploymentRequestSchema, fields), { headers });
}
