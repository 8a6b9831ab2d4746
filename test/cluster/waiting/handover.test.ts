// A cluster goes from the original krane to this one and back, on a real Kubernetes: objects laid down field by field as
// the original leaves them, with pods that ask for secrets all the time, and the agent as it ships. The original itself is
// not run: its writes are server-side applies of its manifests under its field manager, without force.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Deployment, ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { SecretsService } from "../../../src/gen/krane/v1/secrets_pb.ts";
import { desiredReplicaSet } from "../../../src/kinds/deployment/pod-template.ts";
import { sentinelConfiguration } from "../../../src/kinds/sentinel/pod-template.ts";
import { createKubeApi } from "../../../src/kube/client.ts";
import { replicaSets, tokenReviews } from "../../../src/kube/resources.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import { annotationKeys, labelKeys } from "../../../src/model/labels.ts";
import { judgeTokenReview } from "../../../src/services/token-verdict.ts";
import { createFileStorage } from "../../../src/vault/storage/file-storage.ts";
import { agentClient, agentToken } from "../../integration/agent/agent-world.ts";
import { dev as region, serveControlPlane, token } from "../../integration/server/served-control-plane.ts";
import { startAgentProcess } from "../../support/agent-process.ts";
import { loadAuditedCalls } from "../../support/audit-log.ts";
import { realServerTarget } from "../../support/cluster/contract-target.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../../support/deployed-rights.ts";
import { utf8 } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { messageOfOlderAgent, replicaSetOfOlderAgent } from "../../support/older-agent.ts";
import { companionsOfOlderAgent, deploymentOfOlderAgent } from "../../support/older-sentinel.ts";
import { applyPolicy, policyDocument } from "../../support/policy-messages.ts";
import { SecretSeekers } from "../../support/secret-seekers.ts";
import { applySentinel, sentinelSpec } from "../../support/sentinel-messages.ts";
import { createTestVault } from "../../support/vault-fixture.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;
const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";
const guide = new URL("../../../docs/operations/from-the-original.md", import.meta.url);

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

async function items<T>(what: string, namespace: string): Promise<readonly T[]> {
  return JSON.parse(await cluster.kubectl(["-n", namespace, "get", what, "-o", "json"])).items;
}

const writeAsOriginal = ["apply", "--server-side", "--field-manager=krane", "-f", "-"];
const applyAsOriginal = (object: object) =>
  cluster.kubectl(writeAsOriginal, { input: JSON.stringify(object) });

/** Everything that the original applies, repeatedly, for one deployment, sentinel and policy. */
async function reconcileAsOriginal(blob: Uint8Array): Promise<void> {
  const replicaSet = replicaSetOfOlderAgent("acme");
  const [container] = replicaSet.spec?.template?.spec?.containers ?? [];
  const encrypted = { name: "UNKEY_ENCRYPTED_ENV", value: Buffer.from(blob).toString("base64") };
  if (container)
    container.env = [...(container.env ?? []).filter(({ name }) => name !== encrypted.name), encrypted];
  await applyAsOriginal(replicaSet);
  // Its text is indented, and otherwise krane's.
  const configuration = sentinelConfiguration(sentinelSpec(), region).replaceAll(/^/gm, "\t");
  await applyAsOriginal(deploymentOfOlderAgent(configuration));
  const [gate] = await items<Deployment>("deployments", "sentinel");
  for (const companion of Object.values(companionsOfOlderAgent(gate?.metadata?.uid ?? "")))
    await applyAsOriginal(companion);
  const { k8sNamespace: namespace, k8sName: name, ciliumNetworkPolicyId } = applyPolicy();
  const labels = {
    [labelKeys.managedBy]: "krane",
    [labelKeys.component]: "ciliumnetworkpolicy",
    [labelKeys.networkPolicyId]: ciliumNetworkPolicyId,
  };
  await applyAsOriginal({ ...policyDocument, metadata: { namespace, name, labels } });
}

/** The uids of all running pods; fails until there are three. */
async function runningPods(): Promise<readonly string[]> {
  const all = [...(await items<Pod>("pods", "acme")), ...(await items<Pod>("pods", "sentinel"))];
  assert.deepEqual(
    all.map(({ status }) => status?.phase),
    ["Running", "Running", "Running"],
  );
  return all.map(({ metadata }) => metadata?.uid ?? "").sort();
}

/** Kubernetes has looked at the last template of the sentinel, and made one ReplicaSet in all. */
async function assertSentinelNotRolled(): Promise<void> {
  const [gate] = await items<Deployment>("deployments", "sentinel");
  assert.equal(gate?.status?.observedGeneration, gate?.metadata?.generation, "not seen yet");
  assert.equal((await items<ReplicaSet>("replicasets", "sentinel")).length, 1, "rolled");
}

async function createSecrets(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const clock = createSystemClock();
  const vault = createTestVault({ storage: createFileStorage(folder, { clock }), keys: [masterKey], clock });
  t.after(() => vault.close());
  const keyring = messageOfOlderAgent().environmentId;
  const { encrypted } = await vault.encrypt({ keyring, data: "s3cret", context: "PASSWORD" }, never);
  return { folder, blob: utf8(JSON.stringify({ secrets: { PASSWORD: encrypted } })) };
}

test("a cluster is taken over from the original and given back: no pod restarted, nothing deleted or outdated", async (t) => {
  const { folder, blob } = await createSecrets(t);
  const message = messageOfOlderAgent({ encryptedEnvironmentVariables: blob });
  const { transport } = realServerTarget(cluster);
  t.after(() => transport.close());
  const seekers = new SecretSeekers(createKubeApi(transport), "acme");
  await cluster.kubectl(["create", "namespace", "acme"]);
  await reconcileAsOriginal(blob);
  const podsBefore = await eventually("the pods of the original run", runningPods);
  const [first = assert.fail("no pod"), second = assert.fail("no pod")] = await items<Pod>("pods", "acme");

  const { admin, running } = await serveControlPlane(t, "h2c");
  await admin.setDeployment(region, message);
  await admin.setSentinel(region, applySentinel());
  await admin.setPolicy(region, applyPolicy());
  const auditedBefore = (await loadAuditedCalls(cluster.auditLogPath)).length;
  const agent = await startAgentProcess(
    t,
    {
      program: krane.program,
      region,
      controlPlane: { url: running?.url ?? assert.fail("it is not served"), token },
      kubeconfigPath: account.kubeconfigPath,
      agentToken,
    },
    { UNKEY_VAULT_MASTER_KEYS: masterKey, UNKEY_VAULT_FILE_PATH: folder },
  );
  const client = createClient(
    SecretsService,
    createConnectTransport({ baseUrl: agent.url, httpVersion: "1.1" }),
  );
  /** What it is given, or the code of the refusal. */
  const ask = async (pod: Pod, audiences: readonly string[]) => {
    const { deploymentId, environmentId } = message;
    const podToken = await seekers.tokenOf(pod, audiences);
    try {
      const request = { token: podToken, deploymentId, environmentId, encryptedBlob: blob };
      return (await client.decryptSecretsBlob(request)).envVars;
    } catch (error) {
      return Code[ConnectError.from(error).code];
    }
  };
  const given = { PASSWORD: "s3cret" };

  await t.test("pods of the original get their secrets, and are never refused", async () => {
    const refusals = new Set<unknown>();
    await eventually("secrets are given", async () => {
      const answer = await ask(first, []);
      if (typeof answer === "string") refusals.add(answer);
      assert.deepEqual(answer, given);
    });
    // Both mean: try again. The second is the limit for a pod that asks this often.
    for (const later of ["Unavailable", "ResourceExhausted"]) refusals.delete(later);
    assert.deepEqual([...refusals], []);
    assert.deepEqual(await ask(second, []), given);
  });

  await t.test("everything is sealed and reported, and nothing is outdated", async () => {
    await eventually("all is sealed", async () => {
      const all = [
        ...(await items<KubeObject>("replicasets,ciliumnetworkpolicies", "acme")),
        ...(await items<KubeObject>(
          "deployments,services,poddisruptionbudgets,ciliumnetworkpolicies",
          "sentinel",
        )),
      ];
      assert.ok(all.length >= 8, `${all.length} objects`);
      const { objects } = await agentClient(t, agent.url).listObjects({ onlyTroubled: true });
      const troubles = objects.map(({ key, reason }) => `${key}: ${reason}`).join();
      for (const { metadata, kind } of all)
        assert.ok(metadata?.annotations?.[annotationKeys.seal], `${kind} ${metadata?.name}; ${troubles}`);
    });
    await eventually("both pods are reported as current", async () => {
      const instances = await admin.instances(region, message.deploymentId);
      assert.deepEqual(
        instances.map(({ outdated }) => outdated),
        [false, false],
      );
    });
    await eventually("the sentinel is not rolled", assertSentinelNotRolled);
    assert.deepEqual(await runningPods(), podsBefore);
    const { status } = await agentClient(t, agent.url).getStatus({});
    assert.deepEqual(
      status?.controllers.map(({ originalPods }) => originalPods),
      [0, 2, 0, 0],
    );
  });

  await t.test("the agent has deleted nothing", async () => {
    const calls = (await loadAuditedCalls(cluster.auditLogPath)).slice(auditedBefore);
    const own = calls.filter(({ userAgent }) => userAgent.startsWith("krane/"));
    assert.ok(own.some(({ verb }) => verb === "patch"));
    assert.deepEqual(
      own.filter(({ verb }) => verb.startsWith("delete")),
      [],
    );
  });

  await t.test("a pod that krane's template made gets secrets for krane's audience only", async () => {
    await seekers.delete(second);
    const made = await eventually("another pod runs", async () => {
      const others = (await items<Pod>("pods", "acme")).filter(
        ({ metadata }) => metadata?.name !== first.metadata?.name && metadata?.name !== second.metadata?.name,
      );
      return others.find(({ status }) => status?.phase === "Running") ?? assert.fail("not yet");
    });
    assert.equal(await ask(made, []), "Unauthenticated");
    assert.deepEqual(await ask(made, ["krane"]), given);
    assert.deepEqual(await ask(first, []), given);
  });

  await t.test("given back, no pod is restarted and no apply of the original is refused", async () => {
    const podsOfBoth = await eventually("three pods run", runningPods);
    await agent.stop();
    await reconcileAsOriginal(blob);
    await eventually("the sentinel is not rolled", assertSentinelNotRolled);
    assert.deepEqual(await runningPods(), podsOfBoth);
    // What the original would complain about is removed as the guide says.
    const [command = assert.fail("the guide has no such command")] =
      (await readFile(guide, "utf8")).match(/(?<=^kubectl )delete ciliumnetworkpolicies .*$/m) ?? [];
    await cluster.kubectl(command.replaceAll("'", "").split(" "));
    const left = JSON.parse(
      await cluster.kubectl([
        "get",
        "ciliumnetworkpolicies",
        "-A",
        "-l",
        "app.kubernetes.io/managed-by=krane",
        "-o",
        "json",
      ]),
    ).items as readonly KubeObject[];
    assert.deepEqual(
      left.map(({ metadata }) => metadata?.name),
      [applyPolicy().k8sName],
    );
  });
});

test("pods of krane are served by both if the audience of the API server was chosen, as the guide says", async (t) => {
  const text = await readFile(guide, "utf8");
  const [command = assert.fail("the guide has no such command")] =
    text.match(/(?<=^ *kubectl )create token .*$/m) ?? [];
  const audience = await cluster.kubectl(command.replaceAll("'", "").split(" "));
  const { transport } = realServerTarget(cluster);
  t.after(() => transport.close());
  const api = createKubeApi(transport);
  const namespace = await cluster.freshNamespace(t);
  const seekers = new SecretSeekers(api, namespace);
  const made = async (name: string, chosen: string) => {
    const manifest = desiredReplicaSet(seekers.specOf(name), { secrets: { audience: chosen } });
    await api.apply(replicaSets, manifest, { fieldManager: "krane", force: false }, never);
    const pod = await seekers.podOf(`d_${name}`);
    const sources = pod.spec?.volumes?.flatMap(({ projected }) => projected?.sources ?? []) ?? [];
    return seekers.tokenOf(
      pod,
      sources.flatMap(({ serviceAccountToken }) => serviceAccountToken?.audience ?? []),
    );
  };
  const review = async (podToken: string, spec: object) =>
    judgeTokenReview(
      (await api.create(tokenReviews, { spec: { token: podToken, ...spec } }, {}, never)).status,
      undefined,
    ).kind;
  const forBoth = await made("both", audience);
  // The original names no audience in its review.
  assert.equal(await review(forBoth, {}), "genuine");
  assert.equal(await review(forBoth, { audiences: [audience] }), "genuine");
  assert.equal(await review(await made("krane", "krane"), {}), "refused");
});
