// SecretsService before a real Kubernetes: tokens from TokenRequest, as a kubelet gets them, pods that its
// controllers made, and krane with the few rights that it needs for this.
import assert from "node:assert/strict";
import { createSign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { subjectAccessReviews } from "../../src/kube/resources.ts";
import { files } from "../support/cluster/components.ts";
import { clusterUnderTest, type PolicyRule } from "../support/cluster-under-test.ts";
import { manifestsOf } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/krane-process.ts";
import { environmentId, SecretSeekers } from "../support/secret-seekers.ts";
import { defineSecretsAttacks } from "../support/secrets-attacks.ts";
import { serveSecrets } from "../support/served-secrets.ts";

const cluster = clusterUnderTest();
const rights = manifestsOf("rights-secrets.yaml").flatMap(
  (object) => (object as { readonly rules?: readonly PolicyRule[] }).rules ?? [],
);
const admin = connect(cluster.adminToken);
const agent = connect(cluster.agentToken);

function connect(token: string, server = cluster.serverUrl) {
  const credentials = fixedCredential({ authorization: `Bearer ${token}` });
  const endpoint = { server, ca: cluster.ca, credentials };
  const transport = createHttpTransport({ endpoint, connections: 16 }, { clock: createSystemClock() });
  after(() => transport.close());
  return createKubeApi(transport);
}

async function createWorld(t: TestContext, rules = rights) {
  await cluster.grantToAgent(t, rules);
  await eventually("the agent has these rights and no others", async () => {
    for (const rule of rights) assert.equal(await isAllowed(rule), rules.includes(rule));
  });
  const namespace = await cluster.freshNamespace(t);
  const seekers = new SecretSeekers(admin, namespace);
  const served = await serveSecrets(t, agent, seekers.desired);
  return {
    seekers,
    thief: new SecretSeekers(admin, await cluster.freshNamespace(t), seekers.desired),
    served,
    expiredToken: async (pod: Pod) => signedAgain(await seekers.tokenOf(pod), 3_600),
  };
}

async function isAllowed({ apiGroups, resources, verbs }: PolicyRule): Promise<boolean> {
  const [group = "", resource = "", verb = ""] = [apiGroups[0], resources[0], verbs[0]];
  const spec = { user: cluster.agentUser, resourceAttributes: { group, resource, verb } };
  const answer = await admin.create(subjectAccessReviews, { spec }, {}, new AbortController().signal);
  return answer.status?.allowed === true;
}

/** The same claims, some seconds earlier, signed with the cluster's own key. */
function signedAgain(token: string, earlierSeconds: number): string {
  const [header, payload = ""] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
  for (const time of ["exp", "iat", "nbf"]) claims[time] -= earlierSeconds;
  const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  const key = readFileSync(join(cluster.dir, files.serviceAccountKey), "utf8");
  return `${signed}.${createSign("RSA-SHA256").update(signed).sign(key, "base64url")}`;
}

defineSecretsAttacks((t) => createWorld(t));

for (const missing of rights) {
  test(`without the right to ${missing.resources} secrets are unavailable, and no caller is blamed for it`, async (t) => {
    const others = rights.filter((rule) => rule !== missing);
    const { seekers, served } = await createWorld(t, others);
    const token = await seekers.tokenOf(await seekers.deploy("web"));
    await assert.rejects(
      served.client.decryptSecretsBlob({ token, deploymentId: "d_web", environmentId }),
      (error) => ConnectError.from(error).code === Code.Unavailable,
    );
    assert.equal(served.decisions.at(-1)?.outcome.kind, "failed");
  });
}

test("while the API server cannot be reached secrets are unavailable", async (t) => {
  const { seekers } = await createWorld(t);
  const token = await seekers.tokenOf(await seekers.deploy("web"));
  const nowhere = connect(cluster.agentToken, `https://127.0.0.1:${await freePort()}`);
  const served = await serveSecrets(t, nowhere, seekers.desired);
  await assert.rejects(
    served.client.decryptSecretsBlob({ token, deploymentId: "d_web", environmentId }),
    (error) => ConnectError.from(error).code === Code.Unavailable,
  );
  assert.equal(served.decisions.at(-1)?.outcome.kind, "failed");
});

test("what the test signs is good until it ends, so that the expired token is refused for its time alone", async (t) => {
  const { seekers, served } = await createWorld(t);
  const token = signedAgain(await seekers.tokenOf(await seekers.deploy("web")), 60);
  await served.client.decryptSecretsBlob({ token, deploymentId: "d_web", environmentId });
});
