// What becomes of tenants' programs when the kubelet restarts, when their node does not answer, and when its power is cut:
// what krane reports meanwhile is true.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { nodeName } from "../support/node/box.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { orderNode } from "../support/node/node-parts.ts";
import {
  applyAndWait,
  askFromPod,
  listPods,
  patience,
  podsOf,
  removeTenant,
  startProbe,
  type Tenant,
} from "../support/node/tenants.ts";

let krane: InstalledKrane;
const steady: Tenant = { id: "steady", namespace: "steady" };

before(
  async () => {
    krane = await installedKrane();
    await startProbe(krane);
    await applyAndWait(krane, steady);
  },
  { timeout: 600_000 },
);

after(async () => {
  await orderNode("start all");
  await removeTenant(krane, steady);
});

async function causeOf(tenant: Tenant): Promise<string> {
  return JSON.parse(await krane.type(`krane why d_${tenant.id} -o json`)).cause;
}

async function statuses(): Promise<readonly string[]> {
  const { deployment } = JSON.parse(await krane.type("krane get deployment d_steady -o json"));
  return deployment.instances.map(({ status }: { readonly status: string }) => status);
}

const nodeIs = (ready: "True" | "Unknown") =>
  eventually(
    `the node's Ready is ${ready}`,
    () =>
      krane.cluster.kubectl(["wait", `--for=condition=Ready=${ready}`, "--timeout=1s", `node/${nodeName}`]),
    patience,
  );

const isWell = () =>
  eventually(
    "the program answers, and krane says that all is well",
    async () => {
      assert.equal(await causeOf(steady), "all-well");
      const [pod] = await podsOf(krane, steady);
      assert.equal(await askFromPod(krane, `http://${pod?.address}:8080/`), "hello");
    },
    patience,
  );

test("a restart of the kubelet changes nothing for a program, nor for what is reported of it", async () => {
  const before = await podsOf(krane, steady);
  await orderNode("stop kubelet");
  assert.equal(await causeOf(steady), "all-well");
  await orderNode("start kubelet");
  await nodeIs("True");
  await isWell();
  assert.deepEqual(await podsOf(krane, steady), before);
});

test("a node that does not answer is named: whether its programs run is unknown", async () => {
  // Its rules stay, so that krane, which is on the same node, can be asked.
  await orderNode("stop kube-proxy");
  await orderNode("stop kubelet");
  await nodeIs("Unknown");
  await eventually(
    "krane why says so",
    async () => assert.equal(await causeOf(steady), "node-lost"),
    patience,
  );
  assert.deepEqual(await statuses(), ["STATUS_PENDING"]);
  await orderNode("start kube-proxy");
  await orderNode("start kubelet");
  await nodeIs("True");
  await isWell();
});

test("after the power of the node was cut, krane and the programs run again in the same pods", async () => {
  const identities = async () => {
    const containers = (await listPods(krane, steady)).flatMap(
      ({ status }) => status?.containerStatuses ?? [],
    );
    return containers.map(({ containerID }) => containerID);
  };
  const [before, containers] = [await podsOf(krane, steady), await identities()];
  await orderNode("cut power");
  await orderNode("start all");
  // Until the kubelet reports, the API server shows the state from before the cut.
  await eventually(
    "the program has a new container",
    async () => assert.notDeepEqual(await identities(), containers),
    patience,
  );
  await nodeIs("True");
  await isWell();
  assert.deepEqual(
    (await podsOf(krane, steady)).map(({ name }) => name),
    before.map(({ name }) => name),
  );
});
