// What a tenant's program can do from inside its pod, with everything that the pod has. Nothing on this node enforces network
// policies, so every address is reachable: only what asks for credentials is tested here.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { nodeAddress } from "../support/node/box.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { applyAndWait, documentsOf, podsOf, removeTenant, type Tenant } from "../support/node/tenants.ts";

let krane: InstalledKrane;
const thief: Tenant = { id: "thief", namespace: "thief-tenant" };
const victim: Tenant = { id: "owner", namespace: "owner-tenant" };

before(
  async () => {
    krane = await installedKrane();
    for (const tenant of [thief, victim]) {
      const [environment = ""] = documentsOf(tenant).split("\n---\n");
      await krane.type(`krane apply -f - <<'END'\n${environment}\nEND`);
      await krane.type(`echo "secret of ${tenant.id}" | krane secrets set env_${tenant.id} SECRET`);
      await applyAndWait(krane, tenant);
    }
  },
  { timeout: 600_000 },
);

after(async () => {
  for (const tenant of [thief, victim]) await removeTenant(krane, tenant);
});

interface Attempt {
  readonly url: string;
  /** With the token that is mounted for krane. */
  readonly withToken?: boolean;
  /** Where SecretsService expects it. */
  readonly tokenInBody?: boolean;
  readonly body?: unknown;
}

/** What the attempt gets, from a process in the thief's container. */
async function attempt(what: Attempt): Promise<{ readonly status: number; readonly body: string }> {
  const code = `
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    process.emitWarning = () => undefined;
    const { url, withToken, tokenInBody, body } = JSON.parse(process.argv[1]);
    const token = withToken ? require("node:fs").readFileSync(process.env.UNKEY_TOKEN_PATH, "utf8").trim() : undefined;
    fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json", ...(token && { authorization: "Bearer " + token }) },
      body: body === undefined ? undefined : JSON.stringify({ ...body, ...(token && tokenInBody && { token }) }),
      signal: AbortSignal.timeout(30_000),
    }).then(async (answer) => console.log(JSON.stringify({ status: answer.status, body: await answer.text() })));`;
  const [pod] = await podsOf(krane, thief);
  const command = ["/nodejs/bin/node", "-e", code, JSON.stringify(what)];
  return JSON.parse(
    await krane.cluster.kubectl(["-n", thief.namespace, "exec", pod?.name ?? "", "--", ...command]),
  );
}

test("the API server gives nothing without a token, nor for the token that is meant for krane", async () => {
  const url = "https://10.96.0.1/api/v1/namespaces/krane/secrets";
  assert.equal((await attempt({ url })).status, 403);
  assert.equal((await attempt({ url, withToken: true })).status, 401);
});

test("the kubelet's port rejects the pod", async () => {
  const url = `https://${nodeAddress}:10250/pods`;
  assert.equal((await attempt({ url })).status, 401);
  assert.equal((await attempt({ url, withToken: true })).status, 401);
});

test("the control plane rejects the pod's token", async () => {
  const path = "krane.admin.v1.AdminService/ListObjects";
  const url = `http://krane-server.krane.svc.cluster.local:7091/${path}`;
  const { status, body } = await attempt({ url, withToken: true, body: {} });
  assert.equal(status, 401, body);
});

test("krane gives the pod its own secrets and those of no other deployment", async () => {
  const endpoint = await environmentOf(thief, "UNKEY_PROVIDER_ENDPOINT");
  const url = `${endpoint}/krane.v1.SecretsService/DecryptSecretsBlob`;
  const ask = async (from: Tenant, claiming: Tenant) =>
    attempt({
      url,
      withToken: true,
      tokenInBody: true,
      body: {
        encryptedBlob: await environmentOf(from, "UNKEY_ENCRYPTED_ENV"),
        environmentId: `env_${claiming.id}`,
        deploymentId: `d_${claiming.id}`,
      },
    });
  assert.match((await ask(thief, thief)).body, /secret of thief/);
  const claimed = await ask(victim, victim);
  assert.equal(claimed.status, 403, claimed.body);
  const copied = await ask(victim, thief);
  assert.notEqual(copied.status, 200, copied.body);
  for (const { body } of [claimed, copied]) assert.ok(!body.includes("secret of owner"), body);
});

/** A variable in the spec of the tenant's pod. */
async function environmentOf(tenant: Tenant, name: string): Promise<string> {
  const [pod] = await podsOf(krane, tenant);
  const path = `jsonpath={.spec.containers[0].env[?(@.name=="${name}")].value}`;
  return krane.cluster.kubectl(["-n", tenant.namespace, "get", "pod", pod?.name ?? "", "-o", path]);
}
