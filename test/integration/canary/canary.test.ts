// Every secret that an agent holds or passes on, planted once in a whole run at debug level with traces and
// metrics, through its errors too: it reaches its target and is seen nowhere else (K7).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { secrets } from "../../../src/kube/resources.ts";
import { spanCatalogue } from "../../../src/telemetry/span-catalogue.ts";
import { formsOf } from "../../support/canaries.ts";
import { applyDeployment, utf8 } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { buildKrane } from "../../support/krane-process.ts";
import type { SentSpan } from "../../support/otlp-spans.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { SecretSeekers } from "../../support/secret-seekers.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
import { servedClusterToken } from "../../support/served-cluster.ts";
import { createCanaryWorld, region, type Sighting } from "./canary-world.ts";

const never = new AbortController().signal;
const keyring = "env_1a2B3c4D";
const decrypt = "krane.v1.SecretsService/DecryptSecretsBlob";
const status = "krane.v1.AgentService/GetStatus";
const order = "krane.v1.SchedulerService/DeleteDeployment";

let krane: Awaited<ReturnType<typeof buildKrane>>;
before(async () => {
  krane = await buildKrane();
});
after(() => krane.remove());

type World = Awaited<ReturnType<typeof createCanaryWorld>>;

/** Where each may be seen. */
const targets: Readonly<Record<string, RegExp>> = {
  "secret value": /^answer of krane\.v1\.SecretsService\/DecryptSecretsBlob \(200\)$/,
  "token of the pod": /^request POST \/apis\/authentication\.k8s\.io\/v1\/tokenreviews$/,
  "a forged signature": /^request POST \/apis\/authentication\.k8s\.io\/v1\/tokenreviews$/,
  "another forged signature": /^request POST \/apis\/authentication\.k8s\.io\/v1\/tokenreviews$/,
  "registry password":
    /^(object secrets \w+\/krane-registry|request PATCH \/api\/v1\/namespaces\/\w+\/secrets\/krane-registry)$/,
};

function strays({ canaries, sightings }: World): readonly string[] {
  return sightings.flatMap(({ place, text }) =>
    canaries
      .foundIn(text)
      .filter((name) => !targets[name]?.test(place))
      .map((name) => `${name} in ${place}`),
  );
}

function reached(
  { canaries, sightings }: World,
  name: string,
  isTarget: (seen: Sighting) => boolean,
): boolean {
  return sightings.some((seen) => isTarget(seen) && canaries.foundIn(seen.text).includes(name));
}

test("a form is found at every offset, in both alphabets", () => {
  const core = "0123456789abcdef0123456789abcdef?>~";
  for (const [before, after] of [
    ["", ""],
    ["a", "b"],
    ["user:", "!"],
    ["éé", "\n"],
    ['{"p":"', '"}'],
  ] as const)
    for (const encoding of ["utf8", "base64", "base64url", "hex"] as const) {
      const text = Buffer.from(`${before}${core}${after}`).toString(encoding);
      assert.ok(
        formsOf(core).some((form) => text.includes(form)),
        `${before} ${encoding}`,
      );
    }
});

for (const vaultPlace of ["embedded", "remote"] as const)
  test(`with the ${vaultPlace} vault every secret reaches its target and is seen nowhere else`, async (t) => {
    const world = await createCanaryWorld(t, krane.program, vaultPlace);
    const { canaries, tokens, vault, cluster, controlPlane, call } = world;
    const data = canaries.plant("secret value", (core) => `a "quoted"\n\\${core}\u2028`);
    const { encrypted } = await vault.encrypt({ keyring, data, context: "PASSWORD" }, never);

    // What is wanted, all of it.
    const blob = utf8(JSON.stringify({ secrets: { PASSWORD: encrypted } }));
    const deployment = applyDeployment({ encryptedEnvironmentVariables: blob });
    await controlPlane.admin.setDeployment(region, deployment);
    await controlPlane.admin.setSentinel(region, applySentinel());
    await controlPlane.admin.setPolicy(region, applyPolicy());
    const seekers = new SecretSeekers(cluster.api, "acme");
    const pod = await seekers.podOf(deployment.deploymentId);
    const token = canaries.adopt("token of the pod", await seekers.tokenOf(pod));

    // What every door is for.
    const { deploymentId, environmentId } = deployment;
    const question = {
      token,
      deploymentId,
      environmentId,
      encryptedBlob: Buffer.from(blob).toString("base64"),
    };
    const answer = await call(decrypt, question);
    assert.equal(JSON.parse(answer.body).envVars.PASSWORD, data);
    assert.equal((await call(status, {}, tokens.agent)).status, 200);
    assert.equal(
      (await call(order, { k8sNamespace: "acme", k8sName: "none" }, tokens.scheduler)).status,
      200,
    );

    await failEverywhere(world, question);

    const spans = await world.stop();
    assert.deepEqual(strays(world), []);
    const { vaultCall, ...always } = spanCatalogue;
    assert.deepEqual(sentAttributes(spans), attributesOf(vaultPlace === "remote" ? spanCatalogue : always));
    assertHandedOn(spans);
    for (const [name, isTarget] of Object.entries({
      "secret value": ({ place }: Sighting) => place.startsWith(`answer of ${decrypt} (200)`),
      "token of the pod": ({ place }: Sighting) => place.startsWith("request POST"),
      "registry password": ({ place }: Sighting) => place === "object secrets acme/krane-registry",
    }))
      assert.ok(reached(world, name, isTarget), `${name} did not arrive`);
    const pull = await cluster.api.get(secrets, { namespace: "acme", name: "krane-registry" }, {}, never);
    const login = JSON.parse(Buffer.from(pull?.data?.[".dockerconfigjson"] ?? "", "base64").toString("utf8"));
    assert.equal(login.auths["registry.example"].password, world.password);
  });

/** The attributes of each kind of span, over all that were sent. */
function sentAttributes(spans: readonly SentSpan[]): Readonly<Record<string, readonly string[]>> {
  const seen = new Map<string, Set<string>>();
  for (const { name, attributes } of spans) {
    const known = Object.values(spanCatalogue).find((each) => name.startsWith(`${each.name} `));
    const kind = known?.name ?? `${name}, which is not in the catalogue`;
    seen.set(kind, new Set([...(seen.get(kind) ?? []), ...Object.keys(attributes)]));
  }
  return Object.fromEntries([...seen].map(([kind, names]) => [kind, [...names].sort()]));
}

/** A call for secrets leads to the vault, and its trace goes on in the vault's own process. */
function assertHandedOn(spans: readonly SentSpan[]): void {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const parentOf = ({ parentId, traceId }: SentSpan) => {
    const parent = byId.get(parentId);
    return parent?.traceId === traceId ? parent.name : undefined;
  };
  for (const span of spans) {
    if (span.name.startsWith("vault ")) assert.equal(parentOf(span), `rpc ${decrypt}`);
    const [, called] = /^rpc vault\.v1\.VaultService\/(\w+)$/.exec(span.name) ?? [];
    if (called !== undefined) assert.equal(parentOf(span), `vault ${called}`);
  }
}

/** The same as the catalogue has it: nothing is listed that no span has. */
function attributesOf(catalogue: Partial<typeof spanCatalogue>): ReturnType<typeof sentAttributes> {
  return Object.fromEntries(
    Object.values(catalogue).map(({ name, attributes }) => [name, Object.keys(attributes).sort()]),
  );
}

/** Wrong tokens, values that cannot be decrypted, and servers that repeat what they were sent. */
async function failEverywhere(world: World, question: { readonly token: string }): Promise<void> {
  const { canaries, tokens, cluster, controlPlane, call, vaultUrl } = world;
  const wrong = canaries.plant("a wrong token", (core) => `kat_${core}`);
  assert.equal((await call(status, {}, wrong)).status, 401);
  assert.equal((await call(order, { k8sNamespace: "acme", k8sName: "none" }, wrong)).status, 401);
  assert.equal((await call(status, {}, tokens.scheduler)).status, 401);
  if (vaultUrl !== undefined) {
    const encrypt = { keyring, data: canaries.plant("a value without a token") };
    assert.equal((await call("vault.v1.VaultService/Encrypt", encrypt, wrong, vaultUrl)).status, 401);
  }

  const [head = "", claims = ""] = question.token.split(".");
  const forged = `${head}.${claims}.${canaries.plant("a forged signature")}`;
  assert.equal((await call(decrypt, { ...question, token: forged })).status, 401);
  assert.equal((await call(decrypt, { ...question, deploymentId: "d_other" })).status, 403);
  const broken = (value: string) => {
    const blob = JSON.stringify({ secrets: { PASSWORD: value } });
    return call(decrypt, { ...question, encryptedBlob: Buffer.from(blob).toString("base64") });
  };
  assert.notEqual((await broken(canaries.plant("what is no ciphertext"))).status, 200);
  const { encrypted } = await world.vault.encrypt(
    { keyring: "env_other", data: "x", context: "PASSWORD" },
    never,
  );
  assert.notEqual((await broken(encrypted)).status, 200);

  // A control plane that repeats the header in its errors, to streams and to reports.
  controlPlane.state.isEchoing = true;
  controlPlane.faults.cutStreams();
  await eventually("the agent shows what the control plane said", async () => {
    const { body } = await call(status, {}, tokens.agent);
    assert.match(body, /no entry with/);
  });
  controlPlane.state.isEchoing = false;

  // An API server that repeats what it was asked to review, and what it was given to keep.
  // And a proxy that repeats who asked.
  const heal = cluster.server.faults.intercept(({ method, path, body }) => {
    const isEchoed =
      path.endsWith("/tokenreviews") || path.endsWith("/namespaces/other/secrets/krane-registry");
    const isProxied = path.includes("/namespaces/third/replicasets/");
    if (method === "GET" || !(isEchoed || isProxied)) return undefined;
    const message = isProxied ? `no entry for ${servedClusterToken}` : `cannot take ${JSON.stringify(body)}`;
    return { kind: "whole", status: 422, body: { kind: "Status", status: "Failure", code: 422, message } };
  });
  await controlPlane.admin.setDeployment(
    region,
    applyDeployment({ k8sNamespace: "other", k8sName: "api", deploymentId: "d_api" }),
  );
  await controlPlane.admin.setDeployment(
    region,
    applyDeployment({ k8sNamespace: "third", k8sName: "job", deploymentId: "d_job" }),
  );
  await eventually("both deployments are refused", async () => {
    const { body } = await call("krane.v1.AgentService/ListObjects", { onlyTroubled: true }, tokens.agent);
    assert.match(body, /d_api.*422.*d_job.*no entry for/);
  });
  // A token that was not reviewed before.
  const fresh = `${head}.${claims}.${canaries.plant("another forged signature")}`;
  assert.equal((await call(decrypt, { ...question, token: fresh })).status, 503);
  heal();
}
