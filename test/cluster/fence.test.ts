// The second fence, at the API server: whatever an agent believes, its write is stored only if its pod holds the Lease. The
// writers here have the tokens of two pods of the agent, and check nothing themselves.
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { after, before, beforeEach, type TestContext, test } from "node:test";
import type { KubeObject } from "../../src/kube/types.ts";
import type { ApiRequest } from "../support/cluster/api-request.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { createPodToken, installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";
import { createManifestApplier, pathOf } from "../support/manifest-applier.ts";
import { readProjectFile } from "../support/project-files.ts";

const cluster = clusterUnderTest();
const administrator = createManifestApplier(cluster);
const namespace = "acme";
const leases = "/apis/coordination.k8s.io/v1/namespaces/krane/leases";
const leasePath = `${leases}/krane-local.dev`;
const labels = { "app.kubernetes.io/managed-by": "krane" };

interface Writer {
  readonly pod: string;
  readonly token: string;
}

let account: ServiceAccountAccess;
let writers: readonly [Writer, Writer];

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent", "registry", "scheduler"]);
  const writer = async (pod: string) => ({ pod, token: await createPodToken(cluster, pod) });
  writers = [await writer("krane-1"), await writer("krane-2")];
  await cluster.kubectl(["create", "namespace", namespace]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});
beforeEach(async () => {
  await cluster.request({ method: "DELETE", path: leasePath });
});

/** Makes it the leader, as its own election would. */
async function elect({ pod }: Writer): Promise<void> {
  const body = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "krane-local.dev", namespace: "krane" },
    spec: { holderIdentity: `${pod}_0123abcd` },
  };
  const contentType = "application/apply-patch+yaml";
  const path = `${leasePath}?fieldManager=krane&force=true`;
  const { status } = await cluster.request({ method: "PATCH", path, contentType, body });
  assert.ok(status === 200 || status === 201, `${status}`);
}

function replicaSet(name: string): KubeObject {
  const text = readProjectFile("testdata/deployment/minimal/manifests.json");
  const all = JSON.parse(text) as readonly (KubeObject & { readonly spec?: object })[];
  const found = all.find(({ kind }) => kind === "ReplicaSet") ?? assert.fail("no ReplicaSet");
  const metadata = { ...found.metadata, namespace, name };
  return { ...found, metadata, spec: { ...found.spec, replicas: 0 } } as KubeObject;
}

/** One of each way in which the agent writes. */
async function writesOf(t: TestContext): Promise<ReadonlyMap<string, ApiRequest>> {
  const set = replicaSet("web");
  const order = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "krane-order-a",
      namespace: "krane",
      labels: { ...labels, "app.kubernetes.io/component": "order" },
    },
  };
  const pull = {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/dockerconfigjson",
    metadata: { name: "krane-registry", namespace, labels },
    data: { ".dockerconfigjson": Buffer.from('{"auths":{}}').toString("base64") },
  };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-1",
      namespace,
      labels: { ...labels, "app.kubernetes.io/component": "deployment" },
    },
    spec: { containers: [{ name: "web", image: "registry.example/web:1" }] },
  };
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "web-1", namespace } };
  for (const object of [set, order]) {
    await administrator.applied(object);
    t.after(() => administrator.delete(object));
  }
  await cluster.request({ method: "POST", path: `/api/v1/namespaces/${namespace}/pods`, body: pod });
  const dry = (path: string) => `${path}?dryRun=All`;
  const apply = (object: KubeObject): ApiRequest => ({
    method: "PATCH",
    path: `${dry(pathOf(object))}&fieldManager=krane&force=true`,
    contentType: "application/apply-patch+yaml",
    body: object,
  });
  const newNamespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "new", labels } };
  return new Map<string, ApiRequest>([
    ["an apply that creates", apply(replicaSet("new"))],
    ["an apply that changes", apply({ ...set, metadata: { ...set.metadata, annotations: { a: "b" } } })],
    ["a deletion", { method: "DELETE", path: dry(pathOf(set)) }],
    ["a new namespace", { method: "POST", path: dry("/api/v1/namespaces"), body: newNamespace }],
    ["a pull secret", apply(pull)],
    ["the record of an order", apply({ ...order, metadata: { ...order.metadata, name: "krane-order-b" } })],
    ["the deletion of such a record", { method: "DELETE", path: dry(pathOf(order)) }],
    [
      "an eviction",
      { method: "POST", path: dry(`/api/v1/namespaces/${namespace}/pods/web-1/eviction`), body: eviction },
    ],
  ]);
}

/** "taken", or why not. */
async function answerTo(request: ApiRequest, token: string): Promise<string> {
  const { status, body } = await cluster.request({ ...request, token });
  return status === 200 || status === 201
    ? "taken"
    : `${status} ${(body as { readonly message?: string }).message}`;
}

const refusal = (holder: string) =>
  new RegExp(`^403 .*krane-fence.*krane/krane-local\\.dev is held by ${holder}`);

test("the API server refuses every write of a pod that does not hold the Lease", async (t) => {
  const writes = await writesOf(t);
  const [one, other] = writers;
  const takenFrom = async (from: Pick<Writer, "token">) => {
    for (const [what, request] of writes)
      await eventually(what, async () => assert.equal(await answerTo(request, from.token), "taken"));
  };
  // While there is no Lease, nobody can have taken over.
  for (const each of [one, other]) await takenFrom(each);
  for (const [leader, former] of [
    [one, other],
    [other, one],
  ] as const) {
    await elect(leader);
    await takenFrom(leader);
    for (const [what, request] of writes)
      assert.match(await answerTo(request, former.token), refusal(`${leader.pod}_0123abcd`), what);
  }
  // A program outside of a pod does not say which one it is.
  await takenFrom(account);
});

test("what an agent does before it leads is not refused", async () => {
  await elect(writers[0]);
  const metadata = { name: "krane-seal", namespace: "krane", labels };
  const seal = { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque" };
  const dry = "?dryRun=All";
  const { token } = writers[1];
  const create = { method: "POST", path: `/api/v1/namespaces/krane/secrets${dry}`, body: seal } as const;
  assert.equal(await answerTo(create, token), "taken");
  const path = `${leasePath}${dry}`;
  const contentType = "application/merge-patch+json";
  const renew = { method: "PATCH", path, contentType, body: { spec: { renewTime: null } } } as const;
  assert.equal(await answerTo(renew, token), "taken");
});

interface Stored {
  readonly pod: string;
  readonly revision: number;
}

const turns = 6;
const writesPerTurn = 5;

test("no object gets a write of a former leader after one of its successor, while both write without pause", async (t) => {
  const objects = ["web-1", "web-2", "web-3"].map(replicaSet);
  const stored = new Map<KubeObject, Stored[]>();
  for (const object of objects) {
    await administrator.applied(object);
    stored.set(object, []);
  }
  const over = new AbortController();
  const agent = new Agent({ keepAlive: true });
  let refused = 0;
  const write = async ({ pod, token }: Writer, object: KubeObject) => {
    for (let count = 0; !over.signal.aborted; count++) {
      const body = { metadata: { annotations: { write: `${pod} ${count}` } } };
      const contentType = "application/merge-patch+json";
      const request = { method: "PATCH", path: pathOf(object), contentType, body, token, agent } as const;
      const answer = await cluster.request(request);
      const { metadata } = answer.body as KubeObject;
      if (answer.status === 200)
        stored.get(object)?.push({ pod, revision: Number(metadata?.resourceVersion) });
      else refused += 1;
    }
  };
  await elect(writers[1]);
  const running = writers.flatMap((writer) => objects.map((object) => write(writer, object)));
  t.after(() => {
    over.abort();
    agent.destroy();
  });
  const holders: string[] = [];
  const lagsMs: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const leader = writers[turn % 2 === 0 ? 0 : 1];
    holders.push(leader.pod);
    const before = new Map(objects.map((object) => [object, stored.get(object)?.length ?? 0]));
    await elect(leader);
    const electedMs = performance.now();
    const own = (object: KubeObject) =>
      (stored.get(object) ?? []).slice(before.get(object)).filter(({ pod }) => pod === leader.pod).length;
    await eventually(`${leader.pod} writes`, () =>
      assert.ok(
        objects.some((object) => own(object) > 0),
        "not yet",
      ),
    );
    lagsMs.push(performance.now() - electedMs);
    await eventually(`${leader.pod} writes everywhere`, () => {
      for (const object of objects) assert.ok(own(object) >= writesPerTurn, "not yet");
    });
  }
  over.abort();
  await Promise.all(running);
  for (const [object, writes] of stored) {
    const inOrder = writes.sort((one, other) => one.revision - other.revision).map(({ pod }) => pod);
    const sequence = inOrder.filter((pod, index) => pod !== inOrder[index - 1]);
    assert.deepEqual(sequence, [writers[1].pod, ...holders].slice(-sequence.length), object.metadata?.name);
    assert.ok(sequence.length >= turns, "each leader wrote");
  }
  const slowest = Math.max(...lagsMs).toFixed(0);
  t.diagnostic(`${refused} refused; the first write of a leader was stored after ${slowest} ms at most`);
});
