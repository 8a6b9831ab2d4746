// Pods come and go while the agent, the servers, containerd and the kubelet are killed in turn. Meanwhile no pod runs without
// its sandbox or gets the secret of another; in the end what runs is what was ordered.
//
// It takes 2 minutes and up to 20 pods; with KRANE_TEST_LONG=1, 20 minutes and up to 100. KRANE_TEST_KILL_MINUTES is another
// length. KRANE_TEST_SEED repeats the choice of orders.
//
// A turn is a kill and two orders, and lasts 20 seconds at least. Without that pause, 100 pods on two cores (load 30 to 45) are
// more than gVisor can start and stop: StopPodSandbox keeps exceeding its deadline.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { createSeededRandom, uniform } from "../../src/concurrency/random.ts";
import { eventually } from "../support/eventually.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { type Killable, killable, killPart } from "../support/node/node-kills.ts";
import { documentsOf, listPods, type Tenant } from "../support/node/tenants.ts";

const isLong = process.env["KRANE_TEST_LONG"] === "1";
const minutes = Number(process.env["KRANE_TEST_KILL_MINUTES"] ?? (isLong ? 20 : 2));
const podsMax = Math.min(10 * minutes, 100);
const tenantCount = 5;
const replicasMax = Math.floor(podsMax / tenantCount);
const ordersPerKill = 2;
const turnMs = 20_000;
const seed = Number(process.env["KRANE_TEST_SEED"] ?? Math.floor(Date.now() / 1_000));
const random = createSeededRandom(seed);
// A container that crashed often waits for up to five minutes before its next start.
const settling = { deadlineMs: 900_000 };

let krane: InstalledKrane;
const tenants = Array.from(
  { length: tenantCount },
  (_, index): Tenant => ({
    id: `busy${index}`,
    namespace: `busy${index}`,
    fields: { cpu: "500m", memory: "192Mi" },
  }),
);
/** By id; absent once its deletion was ordered. */
const ordered = new Map<string, number>();

function chosen(count: number): number {
  return Math.floor(uniform(random, 0, count));
}

/** Types it until it succeeds: whatever it talks to may be dead at the moment. */
function typeUntilDone(line: string): Promise<string> {
  return eventually(`done: ${line.slice(0, 60)}`, () => krane.type(line), settling);
}

before(
  async () => {
    krane = await installedKrane();
    console.error(`kills: ${minutes} minutes, up to ${podsMax} pods, seed ${seed}`);
    for (const tenant of tenants) {
      const [environment = ""] = documentsOf(tenant).split("\n---\n");
      await typeUntilDone(`krane apply -f - <<'END'\n${environment}\nEND`);
      await typeUntilDone(`echo "secret of ${tenant.id}" | krane secrets set env_${tenant.id} SECRET`);
    }
  },
  { timeout: 600_000 },
);

async function orderSomething(): Promise<void> {
  const tenant = tenants[chosen(tenantCount)] ?? assert.fail("no tenant");
  const { id } = tenant;
  if (ordered.has(id) && chosen(6) === 0) {
    ordered.delete(id);
    const isGone = `! krane get deployment d_${id} > /dev/null 2>&1 && krane get deployments > /dev/null`;
    await typeUntilDone(`krane delete deployment d_${id} --yes || { ${isGone}; }`);
    return;
  }
  const replicas = chosen(replicasMax + 1);
  ordered.set(id, replicas);
  const document = documentsOf({ ...tenant, fields: { ...tenant.fields, replicas } });
  await typeUntilDone(`krane apply -f - <<'END'\n${document}\nEND`);
}

/** What a pod must be at every moment. Resolves with how many programs were asked for their secret. */
async function checkPods(tenant: Tenant): Promise<number> {
  let asked = 0;
  for (const { metadata, spec, status } of await listPods(krane, tenant)) {
    assert.equal(spec?.runtimeClassName, "gvisor", metadata?.name);
    if (!status?.podIP) continue;
    const variables = await variablesOf(status.podIP);
    // Its address may belong to another pod meanwhile, and says so.
    if (variables?.["UNKEY_DEPLOYMENT_ID"] !== `d_${tenant.id}`) continue;
    assert.equal(variables["SECRET"], `secret of ${tenant.id}`, metadata?.name);
    asked += 1;
  }
  return asked;
}

/** Of the program at an address; undefined if none answers. */
async function variablesOf(address: string): Promise<Readonly<Record<string, string>> | undefined> {
  try {
    const response = await fetch(`http://${address}:8080/env`, { signal: AbortSignal.timeout(5_000) });
    return (await response.json()) as Readonly<Record<string, string>>;
  } catch {
    return undefined;
  }
}

async function checkSettled(tenant: Tenant): Promise<void> {
  const replicas = ordered.get(tenant.id) ?? 0;
  const isOrdered = ordered.has(tenant.id);
  const listed = await krane.cluster.kubectl(["-n", tenant.namespace, "get", "replicasets", "-o", "json"]);
  const sets = (JSON.parse(listed) as { readonly items: readonly ReplicaSet[] }).items;
  assert.deepEqual(
    sets.map(({ spec, status }) => [spec?.replicas, status?.readyReplicas ?? 0]),
    isOrdered ? [[replicas, replicas]] : [],
  );
  const pods = await listPods(krane, tenant);
  assert.equal(pods.length, replicas);
  assert.equal(await checkPods(tenant), replicas, "every program answers");
  if (!isOrdered) return;
  const { deployment } = JSON.parse(await krane.type(`krane get deployment d_${tenant.id} -o json`)) as {
    readonly deployment?: {
      readonly instances?: readonly { readonly k8sName: string; readonly status: string }[];
    };
  };
  assert.deepEqual(
    (deployment?.instances ?? []).map(({ k8sName, status }) => `${k8sName} ${status}`).sort(),
    pods.map(({ metadata }) => `${metadata?.name} STATUS_RUNNING`).sort(),
  );
}

test("pods come and go while everything that makes them is killed", {
  timeout: (minutes + 30) * 60_000,
}, async () => {
  const killed = new Map<Killable, number>();
  const endMs = performance.now() + minutes * 60_000;
  let [orders, asked] = [0, 0];
  for (let turn = 0; performance.now() < endMs; turn += 1) {
    const turnEndMs = performance.now() + turnMs;
    const part = killable[turn % killable.length] ?? "agent";
    killed.set(part, (killed.get(part) ?? 0) + (await killPart(part)));
    for (let count = 0; count < ordersPerKill; count += 1) {
      await orderSomething();
      orders += 1;
    }
    do asked += await checkPods(tenants[chosen(tenantCount)] ?? assert.fail("no tenant"));
    while (performance.now() < turnEndMs);
  }
  const kills = killable.map((part) => `${part} ${killed.get(part) ?? 0}`);
  console.error(`kills: ${kills.join(", ")}; ${orders} orders, ${asked} programs asked for their secret`);
  for (const part of killable) assert.ok((killed.get(part) ?? 0) > 0, `${part} was killed`);
  const begun = performance.now();
  for (const tenant of tenants)
    await eventually(`${tenant.id} is as ordered`, () => checkSettled(tenant), settling);
  console.error(`kills: as ordered ${((performance.now() - begun) / 1_000).toFixed(0)} s later`);
});
