// The library's controllers between the two servers of krane/testing, as a program would use them.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  CiliumController,
  type ControllerDeps,
  connectControlPlane,
  connectKubernetes,
  DeploymentController,
  loadSeal,
  parseConfig,
  run,
  SentinelController,
} from "../../../src/index.ts";
import {
  createTestControlPlane,
  kinds,
  ObjectKind,
  startTestCluster,
  type TestCluster,
  type TestControlPlane,
} from "../../../src/testing.ts";
import { applyDeployment, environmentOf } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/krane-process.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
import { testSeal } from "../../support/test-seal.ts";

const never = new AbortController().signal;

interface World {
  readonly cluster: TestCluster;
  readonly plane: TestControlPlane;
  connect(controller: string): ControllerDeps;
  names(kind: keyof typeof kinds): Promise<readonly string[]>;
}

async function createWorld(t: TestContext): Promise<World> {
  const cluster = await startTestCluster();
  t.after(() => cluster.stop());
  const plane = await createTestControlPlane({ region: "local.dev" });
  return {
    cluster,
    plane,
    connect: (controller) => ({
      api: cluster.connect("krane").api,
      controlPlane: plane.connect(controller),
      seal: testSeal,
    }),
    async names(kind) {
      const { items } = await cluster.api.list(kinds[kind], {}, never);
      return items.map(({ metadata }) => metadata?.name ?? "").sort();
    },
  };
}

test("a deployment comes by the stream, its pods are reported, and an order goes as it came", async (t) => {
  const { plane, connect, names } = await createWorld(t);
  const controller = new DeploymentController({ region: plane.region }, connect("deployments"));
  t.after(() => controller.stop());
  await controller.start();
  const wanted = applyDeployment({ k8sName: "api", deploymentId: "d_api" });
  await plane.admin.applyEnvironment({ region: plane.region, ...environmentOf() });
  await plane.admin.applyObject({
    region: plane.region,
    spec: { spec: { case: "deployment", value: wanted } },
  });
  const order = applyDeployment({ k8sName: "web", deploymentId: "d_web" });
  assert.equal((await controller.applyDeployment(order, never)).outcome, "applied");
  await eventually("the pods of the stream's deployment are reported", async () => {
    const ref = { region: plane.region, kind: ObjectKind.DEPLOYMENT, id: "d_api" };
    const { object } = await plane.admin.getObject({ ref });
    assert.ok((object?.deployment?.instances.length ?? 0) > 0, "not yet");
  });
  assert.deepEqual(await names("replicaSets"), ["api", "web"]);
  const { k8sNamespace, k8sName } = order;
  assert.equal((await controller.deleteDeployment({ k8sNamespace, k8sName }, never)).outcome, "deleted");
  assert.deepEqual(await names("replicaSets"), ["api"]);
});

test("a sentinel is applied whole, and deleted whole", async (t) => {
  const { plane, connect, names } = await createWorld(t);
  const controller = new SentinelController({ region: plane.region }, connect("sentinels"));
  t.after(() => controller.stop());
  await controller.start();
  const order = applySentinel({ k8sName: "gate" });
  assert.equal((await controller.applySentinel(order, never)).outcome, "applied");
  assert.deepEqual(await names("appsDeployments"), ["gate"]);
  assert.deepEqual(await names("services"), ["gate", "gate-gossip-lan"]);
  assert.equal((await controller.deleteSentinel({ k8sName: "gate" }, never)).outcome, "deleted");
  assert.deepEqual(await names("services"), []);
});

test("a policy is applied and deleted, and a wrong one is answered with the field", async (t) => {
  const { plane, connect, names } = await createWorld(t);
  const controller = new CiliumController({ region: plane.region }, connect("cilium"));
  t.after(() => controller.stop());
  await controller.start();
  const order = applyPolicy({ k8sName: "to-web" });
  assert.equal((await controller.applyPolicy(order, never)).outcome, "applied");
  assert.deepEqual(await names("ciliumNetworkPolicies"), ["to-web"]);
  const wrong = await controller.applyPolicy({ ...order, k8sName: "" }, never);
  assert.deepEqual([wrong.isInvalid, wrong.fieldPath], [true, "k8s_name"]);
  const { k8sNamespace, k8sName } = order;
  assert.equal((await controller.deletePolicy({ k8sNamespace, k8sName }, never)).outcome, "deleted");
  assert.deepEqual(await names("ciliumNetworkPolicies"), []);
});

test("constructing starts nothing, stopping twice is stopping once, and a stopped one takes no orders", async (t) => {
  const { cluster, plane, connect } = await createWorld(t);
  const asked = cluster.server.store.revision;
  const controller = new DeploymentController({ region: plane.region }, connect("deployments"));
  assert.deepEqual(controller.objects(), []);
  assert.equal(cluster.server.store.revision, asked);
  await controller.start();
  await Promise.all([controller.stop(), controller.stop()]);
  await assert.rejects(controller.applyDeployment(applyDeployment(), never));
});

test("a controller is constructed for a region, and only for that of its control plane connection", async (t) => {
  const { connect } = await createWorld(t);
  for (const Constructor of [DeploymentController, SentinelController, CiliumController]) {
    const construct = (options: object) => new Constructor(options as { region: string }, connect("any"));
    assert.ok(construct({ region: "local.dev" }));
    for (const options of [{}, { region: "" }, { region: undefined }, { region: 7 }])
      assert.throws(() => construct(options), /^TypeError: region: is required/);
    assert.throws(
      () => construct({ region: "us-east-1.aws" }),
      /^TypeError: region: is us-east-1\.aws, but the control plane connection is for local\.dev/,
    );
  }
});

test("by HTTP the same: connections from a kubeconfig and a URL, and a whole agent beside them", async (t) => {
  const { cluster, plane, names } = await createWorld(t);
  const folder = await mkdtemp(join(tmpdir(), "krane-library-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, kubeconfigFor((await cluster.serve()).url));
  const { url, close } = await plane.serve();
  t.after(close);

  const { region, token } = plane;
  const kubernetes = await connectKubernetes({ kubeconfig }, {}, never);
  const seal = await loadSeal({ region, namespace: "krane" }, kubernetes.api, never);
  const controlPlane = connectControlPlane({ controller: "sentinels", url: `${url}/`, region, token });
  const controller = new SentinelController({ region }, { api: kubernetes.api, controlPlane, seal });
  const gate = applySentinel({ k8sName: "gate", sentinelId: "se_1" });
  await plane.admin.applyObject({ region, spec: { spec: { case: "sentinel", value: gate } } });
  await controller.start();
  await eventually("the sentinel is there", async () => {
    assert.deepEqual(await names("appsDeployments"), ["gate"]);
  });
  await controller.stop();
  await controlPlane.close();
  await kubernetes.close();

  const api = applyDeployment({ k8sName: "api" });
  await plane.admin.applyEnvironment({ region, ...environmentOf() });
  await plane.admin.applyObject({ region, spec: { spec: { case: "deployment", value: api } } });
  const flags = {
    region,
    "control-plane-url": url,
    "control-plane-bearer": token,
    "kubernetes-kubeconfig": kubeconfig,
    "rpc-port": String(await freePort()),
    "prometheus-port": "0",
  };
  const outcome = parseConfig({ env: {}, flags, randomId: () => "library1" });
  assert.ok(outcome.kind === "valid", JSON.stringify(outcome));
  const stopping = new AbortController();
  const ended = run(outcome.config, {}, stopping.signal);
  t.after(() => stopping.abort());
  await eventually("the agent has applied the deployment", async () => {
    assert.ok((await names("replicaSets")).includes("api"), "not yet");
  });
  stopping.abort();
  await ended;
});

/** JSON is YAML as well. */
function kubeconfigFor(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    clusters: [{ name: "test", cluster: { server } }],
    users: [{ name: "test", user: {} }],
  });
}
