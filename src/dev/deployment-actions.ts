// The actions for a deployment.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { replicaSets } from "../kube/resources.ts";
import { labelKeys } from "../model/labels.ts";
import { editByHand } from "./cluster-faults.ts";
import type { ActionRegion, KindActions } from "./kind-actions.ts";
import { deploymentIdOf, nextImage, nextName } from "./scenario.ts";
import { applyWanted, loadWantedObjects, type WantedObject } from "./wanted-objects.ts";

type Deployment = WantedObject<"deployment">;

export const deploymentActions: KindActions<"deployment"> = { deployNext, toggleBadSpec, editBehindBack };

// As with a real control plane, a new version is a new deployment beside the old one, which is deleted
// once traffic no longer needs it: there by the router, here by the user.
async function deployNext(region: ActionRegion, { spec }: Deployment, signal: AbortSignal): Promise<string> {
  const taken = new Set((await loadWantedObjects(region, signal)).map((object) => object.spec.k8sName));
  const k8sName = nextName(spec.k8sName, taken);
  const image = nextImage(spec.image);
  const next = { ...spec, k8sName, image, deploymentId: deploymentIdOf(k8sName) };
  const version = await applyWanted(region, "deployment", next);
  return `requested ${k8sName} with ${image} (v${version}); delete ${spec.k8sName} when it is ready`;
}

const badPort = 99_999;

async function toggleBadSpec({ faults, name }: ActionRegion, { id, spec }: Deployment): Promise<string> {
  const port = spec.port === badPort ? 8080 : badPort;
  const version = await faults.editUnchecked(name, "deployment", id, (kept) => ({ ...kept, port }));
  return `requested port ${port} on ${spec.k8sName} (v${version})`;
}

function editBehindBack(region: ActionRegion, { spec }: Deployment, signal: AbortSignal): Promise<string> {
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
