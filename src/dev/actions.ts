// What a person would try, one small function per key. Each goes through the door that is meant for it: the
// control plane's admin API for wishes, its faults for mishaps, the Kubernetes API for what happens behind
// krane's back. Each answers with a sentence about what it did.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { KubeApi } from "../kube/api.ts";
import { pods, replicaSets } from "../kube/kinds.ts";
import { labelKeys } from "../model/labels.ts";
import type { Row } from "../server/store.ts";
import { DevError } from "./dev-error.ts";
import type { DevRegion } from "./dev-region.ts";
import { deploymentIdOf, nextImage, nextName } from "./scenario.ts";

export type ActionRegion = Pick<DevRegion, "name" | "clock" | "admin" | "faults"> & {
  readonly cluster: Pick<DevRegion["cluster"], "api" | "behaviours">;
};

type Deployment = Row<"deployment">;

export type Action =
  | {
      readonly key: string;
      readonly title: string;
      readonly about: "deployment";
      run(region: ActionRegion, deployment: Deployment, signal: AbortSignal): Promise<string>;
    }
  | {
      readonly key: string;
      readonly title: string;
      readonly about: "region";
      run(region: ActionRegion): Promise<string>;
    };

export const actions: readonly Action[] = [
  { key: "+", title: "scale up", about: "deployment", run: (region, row) => scale(region, row, 1) },
  { key: "-", title: "scale down", about: "deployment", run: (region, row) => scale(region, row, -1) },
  { key: "n", title: "new version", about: "deployment", run: deployNextVersion },
  { key: "d", title: "delete", about: "deployment", run: orderDeletion },
  { key: "b", title: "bad spec", about: "deployment", run: toggleBadSpec },
  { key: "p", title: "kill a pod", about: "deployment", run: killPod },
  { key: "c", title: "crash the image", about: "deployment", run: toggleCrash },
  { key: "e", title: "edit behind krane's back", about: "deployment", run: editBehindBack },
  { key: "s", title: "cut the stream", about: "region", run: cutStream },
];

/** Does what a key stands for to the deployment with the given id. */
export async function runAction(
  action: Action,
  region: ActionRegion,
  deploymentId: string,
  signal: AbortSignal,
): Promise<string> {
  if (action.about === "region") return action.run(region);
  const rows = await region.admin.deployments(region.name);
  const row = rows.find(({ id }) => id === deploymentId);
  if (row === undefined) throw new DevError("nothing_to_do", `${action.title}: choose a deployment first`);
  if (row.desired !== "running")
    throw new DevError("nothing_to_do", `${action.title}: ${row.spec.k8sName} is being deleted`);
  return action.run(region, row, signal);
}

async function scale({ admin, name }: ActionRegion, { id, spec }: Deployment, by: number): Promise<string> {
  const replicas = Math.max(0, spec.replicas + by);
  const version = await admin.scale(name, id, replicas);
  return `asked for ${replicas} of ${spec.k8sName} (v${version})`;
}

// As at the real control plane, a new version is a new deployment beside the old one, which goes when
// somebody, there the router and here a person, no longer needs it.
async function deployNextVersion({ admin, name }: ActionRegion, { spec }: Deployment): Promise<string> {
  const taken = new Set((await admin.deployments(name)).map((row) => row.spec.k8sName));
  const k8sName = nextName(spec.k8sName, taken);
  const image = nextImage(spec.image);
  const next = { ...spec, k8sName, image, deploymentId: deploymentIdOf(k8sName) };
  const version = await admin.setDeployment(name, next);
  return `asked for ${k8sName} with ${image} (v${version}); delete ${spec.k8sName} when it is ready`;
}

async function orderDeletion({ admin, name }: ActionRegion, { id, spec }: Deployment): Promise<string> {
  const version = await admin.deleteDeployment(name, id);
  return `asked for the deletion of ${spec.k8sName} (v${version})`;
}

const badPort = 99_999;

async function toggleBadSpec({ admin, name }: ActionRegion, { spec }: Deployment): Promise<string> {
  const port = spec.port === badPort ? 8080 : badPort;
  const version = await admin.setDeployment(name, { ...spec, port });
  return `asked for port ${port} on ${spec.k8sName} (v${version})`;
}

async function killPod(
  { cluster }: ActionRegion,
  { spec }: Deployment,
  signal: AbortSignal,
): Promise<string> {
  const { k8sNamespace: namespace, deploymentId } = spec;
  const labelSelector = `${labelKeys.deploymentId}=${deploymentId}`;
  const { items } = await cluster.api.list(pods, { namespace, labelSelector }, signal);
  const names = items
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata?.name ?? "");
  const [victim] = names.sort();
  if (victim === undefined) throw new DevError("nothing_to_do", `${spec.k8sName} has no pod to kill`);
  await cluster.api.delete(pods, { namespace, name: victim }, { gracePeriodSeconds: 1 }, signal);
  return `killed pod ${victim}`;
}

const crashAfterMs = 1_000;

async function toggleCrash({ cluster, admin, name }: ActionRegion, { spec }: Deployment): Promise<string> {
  const { behaviours } = cluster;
  if (behaviours === undefined)
    throw new DevError("nothing_to_do", "images crash at will only in the embedded cluster");
  const { image } = spec;
  const rule = `crash ${image}`;
  const affected = (await admin.deployments(name)).filter((row) => row.spec.image === image).length;
  const isCrashing = behaviours.of(podOf(image)).crashAfterMs !== "never";
  if (isCrashing) {
    behaviours.remove(rule);
    return `${image} runs again`;
  }
  behaviours.set(rule, { image, behaviour: { crashAfterMs } });
  return `${image} crashes from now on, in ${affected} deployments; the same key mends it`;
}

function podOf(image: string): Pod {
  return { spec: { containers: [{ name: "deployment", image }] } };
}

const stranger = "somebody";
const repairTimeoutMs = 10_000;

// A repair takes milliseconds and would go unseen, so the action stays to see it.
async function editBehindBack(
  { cluster, clock }: ActionRegion,
  { spec }: Deployment,
  signal: AbortSignal,
): Promise<string> {
  const { k8sNamespace: namespace, k8sName: name, deploymentId } = spec;
  // Applying onto nothing would make a ReplicaSet that krane takes for somebody else's.
  const live = await cluster.api.get(replicaSets, { namespace, name }, { detail: "metadata" }, signal);
  if (live === undefined) throw new DevError("nothing_to_do", `ReplicaSet ${name} is not there yet`);
  const replicas = spec.replicas + 3;
  const { object } = await cluster.api.apply(
    replicaSets,
    {
      metadata: { namespace, name, labels: { [labelKeys.projectId]: "edited" } },
      spec: { replicas, selector: { matchLabels: { [labelKeys.deploymentId]: deploymentId } } },
    },
    { fieldManager: stranger, force: true },
    signal,
  );
  const edited = `set ${replicas} replicas and another project on ReplicaSet ${name}`;
  const startedMs = clock.nowMs();
  const isRepaired = (set: ReplicaSet) =>
    set.spec?.replicas === spec.replicas && set.metadata?.labels?.[labelKeys.projectId] === spec.projectId;
  const repaired = await withTimeout(clock, repairTimeoutMs, signal, (until) =>
    waitForChange(cluster.api, object, isRepaired, until),
  ).catch((error: unknown) => {
    if (error instanceof DeadlineError) return false;
    throw error;
  });
  const tookMs = Math.round(clock.nowMs() - startedMs);
  return repaired
    ? `${edited}; krane put it right after ${tookMs} ms`
    : `${edited}; krane did not put it right`;
}

async function waitForChange(
  api: KubeApi,
  { metadata }: ReplicaSet,
  isSeen: (set: ReplicaSet) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = "", name, resourceVersion = "" } = metadata ?? {};
  const selection = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion };
  for await (const event of api.watch(replicaSets, selection, signal)) {
    if (event.type !== "BOOKMARK" && isSeen(event.object)) return true;
  }
  return false;
}

async function cutStream({ faults }: ActionRegion): Promise<string> {
  faults.cutStreams();
  return "cut every stream of the control plane; krane comes back by itself";
}
