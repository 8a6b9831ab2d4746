// SecretsService between pods of all kinds and a Kubernetes API server that also fails.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ServerRequest } from "@krane/kube-apiserver";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { namespaces } from "../../src/kube/resources.ts";
import { VaultError } from "../../src/vault/vault-error.ts";
import { environmentId, SecretSeekers, variables } from "../support/secret-seekers.ts";
import { defineSecretsAttacks } from "../support/secrets-attacks.ts";
import { serveCluster } from "../support/served-cluster.ts";
import { audience, glassVault, sealedBlob, serveSecrets } from "../support/served-secrets.ts";

const never = new AbortController().signal;
const namespace = "acme";

async function createWorld(t: TestContext, options: Parameters<typeof serveSecrets>[3] = {}) {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  for (const name of [namespace, "thieves"])
    await cluster.api.create(namespaces, { metadata: { name } }, {}, never);
  const seekers = new SecretSeekers(cluster.api, namespace);
  // Through a transport of its own, as in the agent.
  const krane = createKubeApi(createInProcessTransport(cluster.server, { userAgent: "krane" }));
  const served = await serveSecrets(t, krane, seekers.desired, options);
  return {
    cluster,
    seekers,
    thief: new SecretSeekers(cluster.api, "thieves", seekers.desired),
    served,
    async expiredToken(pod: Awaited<ReturnType<SecretSeekers["deploy"]>>) {
      const [, claims = ""] = (await seekers.tokenOf(pod)).split(".");
      const bound = JSON.parse(Buffer.from(claims, "base64url").toString("utf8"))["kubernetes.io"];
      const subject = { namespace, ...bound.serviceaccount, pod: bound.pod };
      return cluster.server.tokens.issue(subject, [audience], -60);
    },
  };
}

defineSecretsAttacks((t) => createWorld(t));

const isReview = ({ method, path }: ServerRequest) => method === "POST" && path.endsWith("/tokenreviews");
const isRead = (plural: string) => (request: ServerRequest) =>
  request.method === "GET" && request.path.includes(`/${plural}/`) && request.userAgent === "krane";

function failing(status: number) {
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", code: status, message: "no" };
  return { kind: "whole", status, body } as const;
}

for (const [what, matches] of [
  ["token reviews", isReview],
  ["pods", isRead("pods")],
  ["ReplicaSets", isRead("replicasets")],
] as const) {
  for (const status of [403, 429, 500]) {
    test(`an API server that answers ${status} for ${what} makes secrets unavailable, and only for that time`, async (t) => {
      const { seekers, served, cluster } = await createWorld(t);
      const token = await seekers.tokenOf(await seekers.deploy("web"));
      const request = { token, deploymentId: "d_web", environmentId };
      const heal = cluster.server.faults.intercept((asked) => (matches(asked) ? failing(status) : undefined));
      await assert.rejects(
        served.client.decryptSecretsBlob(request),
        (error) => ConnectError.from(error).code === Code.Unavailable,
      );
      assert.equal(served.decisions.at(-1)?.outcome.kind, "failed");
      heal();
      await served.client.decryptSecretsBlob(request);
    });
  }
}

test("a crowd with the same token is one review, and each of them reads the pod", async (t) => {
  const { seekers, served, cluster } = await createWorld(t);
  const token = await seekers.tokenOf(await seekers.deploy("web"));
  let reviews = 0;
  let reads = 0;
  cluster.server.faults.intercept((asked) => {
    if (isReview(asked)) reviews += 1;
    if (isRead("pods")(asked)) reads += 1;
    return undefined;
  });
  const ask = () => served.client.decryptSecretsBlob({ token, deploymentId: "d_web", environmentId });
  await Promise.all(Array.from({ length: 10 }, ask));
  await ask();
  assert.deepEqual([reviews, reads], [1, 11]);
});

test("one value that cannot be decrypted, and no variable is given; its name is told", async (t) => {
  const { seekers, served } = await createWorld(t);
  const token = await seekers.tokenOf(await seekers.deploy("web"));
  const good = JSON.parse(Buffer.from(sealedBlob(environmentId, variables)).toString("utf8")).secrets;
  const foreign = JSON.parse(Buffer.from(sealedBlob("env_b", { STOLEN: "x" })).toString("utf8")).secrets;
  const encryptedBlob = Buffer.from(JSON.stringify({ secrets: { ...good, ...foreign } }));
  const request = { token, deploymentId: "d_web", environmentId, encryptedBlob };
  await assert.rejects(served.client.decryptSecretsBlob(request), (error) => {
    const { code, rawMessage } = ConnectError.from(error);
    return code === Code.Internal && rawMessage.includes('"STOLEN"');
  });
});

test("a vault that leaves a variable out, or cannot be reached, gives none", async (t) => {
  const short = { decryptBulk: async () => new Map([["GREETING", "hello"]]) };
  const down = { decryptBulk: () => Promise.reject(new VaultError("unavailable", "no route")) };
  for (const [vault, code] of [
    [short, Code.Internal],
    [down, Code.Unavailable],
  ] as const) {
    const { seekers, served } = await createWorld(t, { vault });
    const token = await seekers.tokenOf(await seekers.deploy("web"));
    const encryptedBlob = sealedBlob(environmentId, variables);
    const request = { token, deploymentId: "d_web", environmentId, encryptedBlob };
    await assert.rejects(
      served.client.decryptSecretsBlob(request),
      (error) => ConnectError.from(error).code === code,
    );
  }
});

test("a blob is parsed after its sender was checked: others do not learn whether it is well-formed", async (t) => {
  const { seekers, served } = await createWorld(t);
  const token = await seekers.tokenOf(await seekers.deploy("web"));
  const codeOf = (request: object) =>
    served.client.decryptSecretsBlob({ deploymentId: "d_web", environmentId, ...request }).then(
      () => "ok",
      (error) => ConnectError.from(error).code,
    );
  for (const text of ["{", '{"secrets":[]}', '{"unknown":1}', '{"secrets":{"__proto__":"x"}}', "\u0000"]) {
    const encryptedBlob = Buffer.from(text);
    assert.equal(await codeOf({ token, encryptedBlob }), Code.InvalidArgument, text);
    assert.equal(await codeOf({ token: "a.b.c", encryptedBlob }), Code.Unauthenticated, text);
  }
  assert.equal(await codeOf({ token, encryptedBlob: Buffer.from("{}") }), "ok");
  assert.equal(await codeOf({ token }), "ok");
});

test("a token of the API server's own audience is accepted where that is configured, and still needs a pod", async (t) => {
  const { seekers, served } = await createWorld(t, { acceptDefaultAudience: true });
  const pod = await seekers.deploy("web");
  const request = { deploymentId: "d_web", environmentId };
  for (const audiences of [[], [audience]])
    await served.client.decryptSecretsBlob({ ...request, token: await seekers.tokenOf(pod, audiences) });
  for (const token of [await seekers.unboundToken(), await seekers.tokenOf(pod, ["other"])])
    await assert.rejects(
      served.client.decryptSecretsBlob({ ...request, token }),
      (error) => ConnectError.from(error).code === Code.Unauthenticated,
    );
});

test("the vault of the test opens nothing of another keyring", async () => {
  const { secrets } = JSON.parse(Buffer.from(sealedBlob("env_a", { A: "1" })).toString("utf8"));
  const items = new Map<string, string>(Object.entries(secrets));
  assert.deepEqual(await glassVault.decryptBulk({ keyring: "env_a", items }, never), new Map([["A", "1"]]));
  await assert.rejects(glassVault.decryptBulk({ keyring: "env_b", items }, never));
});
