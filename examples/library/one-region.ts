// A region in one process: a Kubernetes cluster and a control plane, both in memory, and krane's deployment controller.
// The control plane asks for one deployment, and this program orders another.
import { DeploymentController, labels, loadSeal } from "krane";
import { createTestControlPlane, kinds, startTestCluster } from "krane/testing";

const signal = AbortSignal.timeout(30_000);
const identity = { workspaceId: "ws_1", projectId: "proj_1", environmentId: "env_1" };
const size = { replicas: 2, cpuMillicores: 250n, memoryMib: 256n };
const image = "registry.example/acme/web:1";

const cluster = await startTestCluster();
const plane = await createTestControlPlane({ region: "local.dev" });
const { environmentId: id, ...owner } = identity;
await plane.admin.applyEnvironment({ region: plane.region, id, ...owner });
const wanted = { ...identity, ...size, image, k8sNamespace: "acme", k8sName: "api", deploymentId: "d_api" };
await plane.admin.applyObject({
  region: plane.region,
  spec: { spec: { case: "deployment", value: wanted } },
});

const kubernetes = cluster.connect("krane");
const controlPlane = plane.connect("deployments");
const seal = await loadSeal({ region: plane.region, namespace: "krane" }, kubernetes.api, signal);
const deps = { api: kubernetes.api, controlPlane, seal };
const controller = new DeploymentController({ region: plane.region }, deps);
await controller.start(signal);

const ordered = { ...identity, ...size, image, k8sNamespace: "acme", k8sName: "web", deploymentId: "d_web" };
const { outcome, reason } = await controller.applyDeployment(ordered, signal);
console.log(`order: ${outcome}${reason}`);

const found = new Map<string, string>();
for await (const event of cluster.api.watch(kinds.replicaSets, { namespace: "acme" }, signal)) {
  if (event.type !== "ADDED") continue;
  const { metadata, spec } = event.object;
  const id = metadata?.labels?.[labels.labelKeys.deploymentId];
  found.set(metadata?.name ?? "", `${id}, ${spec?.["replicas"]} replicas`);
  if (found.size === 2) break;
}
for (const name of [...found.keys()].sort()) console.log(`ReplicaSet ${name}: ${found.get(name)}`);

const gone = await controller.deleteDeployment({ k8sNamespace: "acme", k8sName: "web" }, signal);
console.log(`deletion: ${gone.outcome}`);

await controller.stop();
await controlPlane.close();
await kubernetes.close();
await cluster.stop();
