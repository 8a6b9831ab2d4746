// What a person would try with a sentinel.
import type { Deployment as AppsDeployment } from "kubernetes-types/apps/v1.js";
import { appsDeployments } from "../kube/resources.ts";
import { labelKeys, sentinelNamespace as namespace } from "../model/labels.ts";
import type { Row } from "../server/store.ts";
import { editByHand, killOnePod, toggleImageCrash } from "./cluster-mishaps.ts";
import type { DeedRegion, Deeds } from "./deed.ts";
import { nextImage } from "./scenario.ts";

type Sentinel = Row<"sentinel">;

export const sentinelDeeds: Deeds<"sentinel"> = {
  scaleUp: (region, row) => scale(region, row, 1),
  scaleDown: (region, row) => scale(region, row, -1),
  deployNext,
  orderDeletion,
  toggleBadSpec,
  killPod: (region, { id, spec: { k8sName: name } }, signal) =>
    killOnePod(region, { namespace, name, labelSelector: `${labelKeys.sentinelId}=${id}` }, signal),
  toggleCrash: (region, { spec }) => toggleImageCrash(region, spec.image),
  editBehindBack,
};

async function scale({ admin, name }: DeedRegion, { id, spec }: Sentinel, by: number): Promise<string> {
  const replicas = Math.max(0, spec.replicas + by);
  const version = await admin.scaleSentinel(name, id, replicas);
  return `asked for ${replicas} of ${spec.k8sName} (v${version})`;
}

// Unlike a deployment, a sentinel keeps its name and is rolled over to its new image.
async function deployNext({ admin, name }: DeedRegion, { spec }: Sentinel): Promise<string> {
  const image = nextImage(spec.image);
  const version = await admin.setSentinel(name, { ...spec, image });
  return `asked for ${image} on ${spec.k8sName} (v${version})`;
}

async function orderDeletion({ admin, name }: DeedRegion, { id, spec }: Sentinel): Promise<string> {
  const version = await admin.deleteSentinel(name, id);
  return `asked for the deletion of ${spec.k8sName} (v${version})`;
}

async function toggleBadSpec({ admin, name }: DeedRegion, { spec }: Sentinel): Promise<string> {
  const cpuMillicores = spec.cpuMillicores === 0n ? 100n : 0n;
  const version = await admin.setSentinel(name, { ...spec, cpuMillicores });
  return `asked for ${cpuMillicores} millicores on ${spec.k8sName} (v${version})`;
}

function editBehindBack(region: DeedRegion, { id, spec }: Sentinel, signal: AbortSignal): Promise<string> {
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
