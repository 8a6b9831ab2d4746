// What a tenant's program can do from inside its pod, with everything that the pod has. Nothing on this node enforces network
// policies, so every address is reachable. What asks for credentials must reject the pod; of the metadata address, which
// asks for none, only the policy can be tested that Cilium would enforce.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { Pod } from "kubernetes-types/core/v1.js";
import { nodeAddress } from "../support/node/box.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import {
  applyAndWait,
  documentsOf,
  listPods,
  podsOf,
  removeTenant,
  type Tenant,
} from "../support/node/tenants.ts";

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

/** What a program prints that runs in the thief's container. */
async function runInThief(code: string, argument: string): Promise<string> {
  const [pod] = await podsOf(krane, thief);
  const command = ["/nodejs/bin/node", "-e", code, argument];
  return krane.cluster.kubectl(["-n", thief.namespace, "exec", pod?.name ?? "", "--", ...command]);
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
  return JSON.parse(await runInThief(code, JSON.stringify(what)));
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

test("the services of krane's agent and vault reject the pod's token", async () => {
  const agent = "http://krane.krane.svc.cluster.local:8070/krane.v1.AgentService";
  const vault = "http://krane-vault.krane.svc.cluster.local:8060/vault.v1.VaultService";
  const region = { name: "local", platform: "dev" };
  const calls = [
    { url: `${agent}/ListObjects`, body: {} },
    { url: `${agent}/ReleaseDeletion`, body: { controller: "deployments", key: "owner-tenant/owner" } },
    { url: `${vault}/Decrypt`, body: { keyring: "env_owner", encrypted: "AAAA" } },
    {
      url: "http://krane-server.krane.svc.cluster.local:7091/ctrl.v1.ClusterService/Heartbeat",
      body: { region },
    },
  ];
  for (const call of calls) {
    assert.equal((await attempt(call)).status, 401, call.url);
    assert.equal((await attempt({ ...call, withToken: true })).status, 401, call.url);
  }
});

test("krane's health and metrics, which ask for no credentials, name no tenant", async () => {
  const { items } = JSON.parse(await krane.cluster.kubectl(["-n", "krane", "get", "pods", "-o", "json"])) as {
    readonly items: readonly Pod[];
  };
  assert.ok(items.length >= 5);
  for (const { metadata, spec, status } of items) {
    const ports = spec?.containers[0]?.ports?.map(({ containerPort }) => containerPort) ?? [];
    for (const port of ports) {
      const path = port === 9090 ? "/metrics" : "/health/ready";
      const { status: code, body } = await attempt({ url: `http://${status?.podIP}:${port}${path}` });
      assert.equal(code, 200, `${metadata?.name} ${path}`);
      assert.doesNotMatch(body, /_owner|_thief|-tenant/, `${metadata?.name} ${path}`);
    }
  }
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

test("of the node, the pod reaches only ports that ask for credentials or tell nothing", async () => {
  const code = `
    const { connect } = require("node:net");
    const reached = JSON.parse(process.argv[1]).map(({ host, port }) => new Promise((resolve) => {
      const socket = connect({ host, port, timeout: 20_000 });
      socket.on("connect", () => { socket.destroy(); resolve([port]); });
      for (const event of ["error", "timeout"]) socket.on(event, () => { socket.destroy(); resolve([]); });
    }));
    Promise.all(reached).then((ports) => console.log(JSON.stringify(ports.flat())));`;
  const ports = await listeningPorts();
  const targets = ports.map((port) => ({ host: nodeAddress, port }));
  const reached = JSON.parse(await runInThief(code, JSON.stringify(targets))) as readonly number[];
  const apiServer = Number(new URL(krane.cluster.serverUrl).port);
  const [postgres, kubelet, proxyHealth] = [5432, 10250, 10256];
  assert.deepEqual(
    [...new Set(reached)].sort((a, b) => a - b),
    [apiServer, postgres, kubelet, proxyHealth].sort((a, b) => a - b),
    `of ${ports.join(", ")}`,
  );
  assert.equal((await attempt({ url: `https://${nodeAddress}:${apiServer}/api/v1/nodes` })).status, 403);
  assert.equal((await attempt({ url: `http://${nodeAddress}:${proxyHealth}/metrics` })).status, 404);
});

/** The TCP ports on which something in the box listens, on whichever address: /proc/net/tcp has them in hexadecimal. */
async function listeningPorts(): Promise<readonly number[]> {
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8")));
  const rows = tables.flatMap((table) => table.trim().split("\n").slice(1));
  const listening = rows.map((row) => row.trim().split(/\s+/)).filter(([, , , state]) => state === "0A");
  const ports = listening.map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16));
  return [...new Set(ports)].sort((a, b) => a - b);
}

test("the metadata address is denied by a policy on the pod, and without Cilium that is all there is", async (t) => {
  const metadataAddress = "169.254.169.254";
  const run = promisify(execFile);
  // A node in a cloud has this address behind it.
  await run("ip", ["address", "add", `${metadataAddress}/32`, "dev", "node0"]);
  t.after(() => run("ip", ["address", "del", `${metadataAddress}/32`, "dev", "node0"]));
  const server = createServer((_, response) => response.end("credentials of the node"));
  server.listen(80, metadataAddress);
  await once(server, "listening");
  t.after(() => server.close());
  // Nothing enforces the policy here. If this fails, something does, and the test can ask for more.
  assert.equal((await attempt({ url: `http://${metadataAddress}/` })).body, "credentials of the node");
  const policy = JSON.parse(
    await krane.cluster.kubectl(["get", "ccnp", "krane-workloads", "-o", "json"]),
  ) as {
    readonly spec: {
      readonly endpointSelector: { readonly matchLabels: Readonly<Record<string, string>> };
      readonly egressDeny: readonly unknown[];
    };
  };
  const { endpointSelector, egressDeny } = policy.spec;
  assert.deepEqual(egressDeny, [{ toEntities: ["kube-apiserver"] }, { toCIDR: [`${metadataAddress}/32`] }]);
  const [{ metadata } = assert.fail("no pod")] = await listPods(krane, thief);
  for (const [key, value] of Object.entries(endpointSelector.matchLabels))
    assert.equal(metadata?.labels?.[key.replace(/^k8s:/, "")], value, key);
});

/** A variable in the spec of the tenant's pod. */
async function environmentOf(tenant: Tenant, name: string): Promise<string> {
  const [pod] = await podsOf(krane, tenant);
  const path = `jsonpath={.spec.containers[0].env[?(@.name=="${name}")].value}`;
  return krane.cluster.kubectl(["-n", tenant.namespace, "get", "pod", pod?.name ?? "", "-o", path]);
}
