// What people and programs with rights of their own do to objects in the cluster, with field managers of their own.
import type { Choices } from "./choices.ts";
import { anyPlace, namespaces } from "./places.ts";
import type { LiveObject } from "./sim-cluster.ts";
import type { World } from "./world.ts";

const groups = {
  replicasets: "apps",
  deployments: "apps",
  ciliumnetworkpolicies: "cilium.io",
  pods: "",
} as const;
type Plural = keyof typeof groups;
const versions = { apps: "v1", "cilium.io": "v2", "": "v1" } as const;

export function pathOf(plural: Plural, { metadata: { namespace = "", name = "" } }: LiveObject): string {
  const group = groups[plural];
  const root = group === "" ? "/api/v1" : `/apis/${group}/${versions[group]}`;
  return `${root}/namespaces/${namespace}/${plural}/${name}`;
}

export function pick(world: World, choices: Choices, plural: Plural): LiveObject | undefined {
  const objects = world.cluster.list(plural, groups[plural]);
  return objects.length === 0 ? undefined : choices.one(objects);
}

function isOfDeployment({ metadata: { ownerReferences } }: LiveObject): boolean {
  return ownerReferences?.[0]?.kind === "Deployment";
}

/** Somebody deletes an object that krane manages, or a pod. */
export async function deleteByHand(world: World, choices: Choices): Promise<void> {
  const plural = choices.one([
    "replicasets",
    "deployments",
    "ciliumnetworkpolicies",
    "pods",
    "pods",
  ] as const);
  const object = pick(world, choices, plural);
  if (object !== undefined) await world.cluster.kubectl({ method: "DELETE", path: pathOf(plural, object) });
}

const extraContainer = { name: "extra", image: "registry.example/extra/shell" };

const edits: readonly ((choices: Choices) => unknown)[] = [
  (choices) => ({ spec: { replicas: choices.index(5) } }),
  () => ({ metadata: { labels: { "people.example/note": "mine" } } }),
  () => ({ metadata: { labels: { "app.kubernetes.io/managed-by": null } } }),
  () => ({ metadata: { annotations: { "krane.unkey.com/seal": "forged" } } }),
  () => ({ metadata: { annotations: { "krane.unkey.com/manifest-hash": "0" } } }),
  () => ({ spec: { template: { spec: { runtimeClassName: null } } } }),
  () => ({ spec: { template: { spec: { hostNetwork: true } } } }),
  () => ({ spec: { template: { spec: { terminationGracePeriodSeconds: 7 } } } }),
  () => [{ op: "add", path: "/spec/template/spec/containers/-", value: extraContainer }],
  () => ({ metadata: { labels: { "unkey.com/deployment.id": "d_other" } } }),
  () => ({ metadata: { labels: { "unkey.com/environment.id": "env_other" } } }),
];

/** Somebody edits a workload with kubectl. */
export async function editByHand(world: World, choices: Choices): Promise<void> {
  const plural = choices.one(["replicasets", "replicasets", "deployments"] as const);
  const object = pick(world, choices, plural);
  // The ReplicaSet of an apps/v1 Deployment is not krane's, and the embedded cluster does not repair its template.
  if (object === undefined || isOfDeployment(object)) return;
  const body = choices.one(edits)(choices);
  const contentType = Array.isArray(body) ? "application/json-patch+json" : "application/merge-patch+json";
  await world.cluster.kubectl({ method: "PATCH", path: pathOf(plural, object), contentType, body });
}

/**
 * Somebody creates a ReplicaSet of their own under a name that a tenant may use later, with krane's labels. Its pods pose
 * as those of a tenant.
 */
export async function createForeign(world: World, choices: Choices): Promise<void> {
  const { namespace, name, environment } = anyPlace(choices);
  const labels = {
    "app.kubernetes.io/managed-by": "krane",
    "app.kubernetes.io/component": "deployment",
    "unkey.com/deployment.id": `d_${namespace}${name.at(-1)}-0`,
    "unkey.com/environment.id": environment,
  };
  const selector = { "foreign.example/app": name };
  const containers = [{ name: "app", image: "registry.example/foreign/app" }];
  const template = {
    metadata: { labels: { ...labels, ...selector } },
    spec: { runtimeClassName: "gvisor", containers },
  };
  const body = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: choices.chance(0.3) ? name : `foreign-${name}`, namespace, labels },
    spec: { replicas: choices.index(2), selector: { matchLabels: selector }, template },
  };
  const path = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
  await world.cluster.kubectl({ method: "POST", path, contentType: "application/json", body });
}

const kinds = { replicasets: "ReplicaSet", ciliumnetworkpolicies: "CiliumNetworkPolicy" } as const;

/** Somebody copies an object of krane's with its labels, annotations and seal, under another name or into another namespace. */
export async function copyByHand(world: World, choices: Choices): Promise<void> {
  const plural = choices.one(["replicasets", "ciliumnetworkpolicies"] as const);
  const object = pick(world, choices, plural);
  // An apps/v1 Deployment would adopt the copy of its ReplicaSet.
  if (object === undefined || isOfDeployment(object)) return;
  const { name = "", namespace = "", labels, annotations } = object.metadata;
  const metadata = choices.chance(0.5)
    ? { name: `${name}-copy`, namespace, labels, annotations }
    : { name, namespace: choices.one(namespaces), labels, annotations };
  const group = groups[plural];
  await world.cluster.kubectl({
    method: "POST",
    path: `/apis/${group}/${versions[group]}/namespaces/${metadata.namespace}/${plural}`,
    contentType: "application/json",
    body: { apiVersion: `${group}/${versions[group]}`, kind: kinds[plural], metadata, spec: object["spec"] },
  });
}

const releaseAgainMs = 20_000;

/** Somebody adds a finalizer, and removes it after a while. Until then the object can only be marked as deleted. */
export async function holdByHand(world: World, choices: Choices): Promise<void> {
  const plural = choices.one(["replicasets", "deployments", "ciliumnetworkpolicies", "pods"] as const);
  const object = pick(world, choices, plural);
  if (object === undefined) return;
  const patch = (finalizers: readonly string[] | null) =>
    world.cluster.kubectl({
      method: "PATCH",
      path: pathOf(plural, object),
      contentType: "application/merge-patch+json",
      body: { metadata: { finalizers } },
    });
  // A webhook may refuse that for a while.
  const release = async () => {
    const { status } = await patch(null);
    if (status !== 404 && status >= 400) world.clock.setTimer(releaseAgainMs, () => void release());
  };
  await patch(["people.example/hold"]);
  world.clock.setTimer(choices.between(10_000, 300_000), () => void release());
}

/** With everything in it. */
export async function deleteNamespace(world: World, choices: Choices): Promise<void> {
  const path = `/api/v1/namespaces/${choices.one([...namespaces, "sentinel"])}`;
  await world.cluster.kubectl({ method: "DELETE", path });
}
