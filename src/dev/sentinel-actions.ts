// The actions for a sentinel.
import type { Deployment as AppsDeployment } from "kubernetes-types/apps/v1.js";
import { appsDeployments } from "../kube/resources.ts";
import { labelKeys, sentinelNamespace as namespace } from "../model/labels.ts";
import { editByHand } from "./cluster-faults.ts";
import type { ActionRegion, KindActions } from "./kind-actions.ts";
import { nextImage } from "./scenario.ts";
import { applyWanted, type WantedObject } from "./wanted-objects.ts";

type Sentinel = WantedObject<"sentinel">;

export const sentinelActions: KindActions<"sentinel"> = { deployNext, toggleBadSpec, editBehindBack };

// Unlike a deployment, a sentinel keeps its name and rolls out its new image.
async function deployNext(region: ActionRegion, { spec }: Sentinel): Promise<string> {
  const image = nextImage(spec.image);
  const version = await applyWanted(region, "sentinel", { ...spec, image });
  return `requested ${image} on ${spec.k8sName} (v${version})`;
}

async function toggleBadSpec({ faults, name }: ActionRegion, { id, spec }: Sentinel): Promise<string> {
  const cpuMillicores = spec.cpuMillicores === 0n ? 100n : 0n;
  const version = await faults.editUnchecked(name, "sentinel", id, (kept) => ({ ...kept, cpuMillicores }));
  return `requested ${cpuMillicores} millicores on ${spec.k8sName} (v${version})`;
}

function editBehindBack(region: ActionRegion, { id, spec }: Sentinel, signal: AbortSignal): Promise<string> {
  const { k8sName: name, projectId } = spec;
  const replicas = spec.replicas + 3;
  const labels = { [labelKeys.sentinelId]: id };
  const manifest: AppsDeployment = {
    metadata: { namespace, name, labels: { [labelKeys.projectId]: "edited" } },
    spec: { replicas, selector: { matchLabels: labels }, template: {} },
  };
  const told = `set ${replicas} replicas and another project on Deployment ${name}`;
  const isRepaired = (live: AppsDeployment) =>
    live.spec?.replicas === spec.replicas && live.metadata?.labels?.[labelKeys.projectId] === projectId;
  return editByHand(region, { kind: appsDeployments, manifest, told, isRepaired }, signal);
}
