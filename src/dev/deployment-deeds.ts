// What a person would try with a deployment.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { replicaSets } from "../kube/resources.ts";
import { labelKeys } from "../model/labels.ts";
import type { Row } from "../server/store.ts";
import { editByHand, killOnePod, toggleImageCrash } from "./cluster-mishaps.ts";
import type { DeedRegion, Deeds } from "./deed.ts";
import { deploymentIdOf, nextImage, nextName } from "./scenario.ts";

type Deployment = Row<"deployment">;

export const deploymentDeeds: Deeds<"deployment"> = {
  scaleUp: (region, row) => scale(region, row, 1),
  scaleDown: (region, row) => scale(region, row, -1),
  deployNext,
  orderDeletion,
  toggleBadSpec,
  killPod: (region, { spec }, signal) => killOnePod(region, podsOf(spec), signal),
  toggleCrash: (region, { spec }) => toggleImageCrash(region, spec.image),
  editBehindBack,
};

async function scale({ admin, name }: DeedRegion, { id, spec }: Deployment, by: number): Promise<string> {
  const replicas = Math.max(0, spec.replicas + by);
  const version = await admin.scale(name, id, replicas);
  return `asked for ${replicas} of ${spec.k8sName} (v${version})`;
}

// As at the real control plane, a new version is a new deployment beside the old one, which goes when
// somebody, there the router and here a person, no longer needs it.
async function deployNext({ admin, name }: DeedRegion, { spec }: Deployment): Promise<string> {
  const taken = new Set((await admin.deployments(name)).map((row) => row.spec.k8sName));
  const k8sName = nextName(spec.k8sName, taken);
  const image = nextImage(spec.image);
  const next = { ...spec, k8sName, image, deploymentId: deploymentIdOf(k8sName) };
  const version = await admin.setDeployment(name, next);
  return `asked for ${k8sName} with ${image} (v${version}); delete ${spec.k8sName} when it is ready`;
}

async function orderDeletion({ admin, name }: DeedRegion, { id, spec }: Deployment): Promise<string> {
  const version = await admin.deleteDeployment(name, id);
  return `asked for the deletion of ${spec.k8sName} (v${version})`;
}

const badPort = 99_999;

async function toggleBadSpec({ admin, name }: DeedRegion, { spec }: Deployment): Promise<string> {
  const port = spec.port === badPort ? 8080 : badPort;
  const version = await admin.setDeployment(name, { ...spec, port });
  return `asked for port ${port} on ${spec.k8sName} (v${version})`;
}

function podsOf({ k8sNamespace: namespace, k8sName: name, deploymentId }: Deployment["spec"]) {
  return { namespace, name, labelSelector: `${labelKeys.deploymentId}=${deploymentId}` };
}

function editBehindBack(region: DeedRegion, { spec }: Deployment, signal: AbortSignal): Promise<string> {
  const { k8sNamespace: namespace, k8sName: name, deploymentId, projectId } = spec;
  const replicas = spec.replicas + 3;
  const manifest: ReplicaSet = {
    metadata: { namespace, name, labels: { [labelKeys.projectId]: "edited" } },
    spec: { replicas, selector: { matchLabels: { [labelKeys.deploymentId]: deploymentId } } },
  };
  const told = `set ${replicas} replicas and another project on ReplicaSet ${name}`;
  const isRepaired = (live: ReplicaSet) =>
    live.spec?.replicas === spec.replicas && live.metadata?.labels?.[labelKeys.projectId] === projectId;
  return editByHand(region, { kind: replicaSets, manifest, told, isRepaired }, signal);
}
