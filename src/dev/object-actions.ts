// What the keys of `krane dev` do to an object of each kind.
import { isDeepStrictEqual } from "node:util";
import { type KindName, kindOf } from "../kinds/kinds.ts";
import { ciliumPolicyKind } from "../kinds/policy/policy-document.ts";
import { appsDeployments, type CustomObject, ciliumNetworkPolicies, replicaSets } from "../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../kube/types.ts";
import { labelKeys } from "../model/labels.ts";
import { editByHand, killOnePod, toggleImageCrash } from "./cluster-faults.ts";
import type { ActionName, ActionRegion, KindActions, RunAction } from "./kind-actions.ts";
import { deploymentIdOf, nextImage, nextName } from "./scenario.ts";
import { applyWanted, loadWantedObjects, type WantedObject } from "./wanted-objects.ts";

const badPort = 99_999;

const deploymentActions: KindActions<"deployment"> = {
  // As with a real control plane, a new version is a new deployment beside the old one, which is deleted
  // once traffic no longer needs it: there by the router, here by the user.
  async deployNext(region, { spec }, signal) {
    const taken = new Set((await loadWantedObjects(region, signal)).map((object) => object.spec.k8sName));
    const k8sName = nextName(spec.k8sName, taken);
    const image = nextImage(spec.image);
    const next = { ...spec, k8sName, image, deploymentId: deploymentIdOf(k8sName) };
    const version = await applyWanted(region, "deployment", next);
    return `requested ${k8sName} with ${image} (v${version}); delete ${spec.k8sName} when it is ready`;
  },

  async toggleBadSpec({ faults, name }, { id, spec }) {
    const port = spec.port === badPort ? 8080 : badPort;
    const version = await faults.editUnchecked(name, "deployment", id, (kept) => ({ ...kept, port }));
    return `requested port ${port} on ${spec.k8sName} (v${version})`;
  },

  editBehindBack: (region, object, signal) => editWorkload({ kind: replicaSets }, region, object, signal),
};

const sentinelActions: KindActions<"sentinel"> = {
  // Unlike a deployment, a sentinel keeps its name and rolls out its new image.
  async deployNext(region, { spec }) {
    const image = nextImage(spec.image);
    const version = await applyWanted(region, "sentinel", { ...spec, image });
    return `requested ${image} on ${spec.k8sName} (v${version})`;
  },

  async toggleBadSpec({ faults, name }, { id, spec }) {
    const cpuMillicores = spec.cpuMillicores === 0n ? 100n : 0n;
    const version = await faults.editUnchecked(name, "sentinel", id, (kept) => ({ ...kept, cpuMillicores }));
    return `requested ${cpuMillicores} millicores on ${spec.k8sName} (v${version})`;
  },

  editBehindBack: (region, object, signal) =>
    editWorkload({ kind: appsDeployments, template: {} }, region, object, signal),
};

const otherKind = "NetworkPolicy";

const policyActions: KindActions<"policy"> = {
  async toggleBadSpec({ faults, name }, { id, spec }) {
    const document = documentOf(spec);
    const kind = document.kind === otherKind ? ciliumPolicyKind : otherKind;
    const policy = new TextEncoder().encode(JSON.stringify({ ...document, kind }));
    const version = await faults.editUnchecked(name, "policy", id, (kept) => ({ ...kept, policy }));
    return `requested a ${kind} as ${spec.k8sName} (v${version})`;
  },

  editBehindBack(region, { spec }, signal) {
    const { k8sNamespace: namespace, k8sName: name } = spec;
    const manifest: CustomObject = {
      metadata: { namespace, name },
      spec: { ingress: [{ fromEntities: ["all"] }] },
    };
    const told = `opened CiliumNetworkPolicy ${name} to everybody`;
    const wanted = documentOf(spec).spec;
    const isRepaired = (live: CustomObject) => isDeepStrictEqual(live.spec, wanted);
    return editByHand(region, { kind: ciliumNetworkPolicies, manifest, told, isRepaired }, signal);
  },
};

const ownActions: { readonly [K in KindName]?: KindActions<K> } = {
  deployment: deploymentActions,
  sentinel: sentinelActions,
  policy: policyActions,
};

/** Undefined if the kind has no such action. */
export function actionOf(kind: KindName, name: ActionName): RunAction<KindName> | undefined {
  // An action of a kind is only given objects of that kind.
  const own = ownActions[kind] as KindActions<KindName> | undefined;
  return own?.[name] ?? sharedActions(kind)[name];
}

/** The actions for objects of any kind, or of any kind with pods. */
function sharedActions(kind: KindName): KindActions<KindName> {
  if (!kindOf(kind).makesPods) return { orderDeletion };
  return {
    orderDeletion,
    scaleUp: (region, object) => scale(region, object, 1),
    scaleDown: (region, object) => scale(region, object, -1),
    killPod: (region, object, signal) => killOnePod(region, podsOf(object), signal),
    toggleCrash: (region, { spec }, signal) =>
      toggleImageCrash(region, "image" in spec ? spec.image : "", signal),
  };
}

async function scale({ admin }: ActionRegion, { spec, view }: WantedObject, by: number): Promise<string> {
  const replicas = Math.max(0, ("replicas" in spec ? spec.replicas : 0) + by);
  const { version } = await admin.scaleObject({ ...refOf(view), replicas });
  return `scaled ${spec.k8sName} to ${replicas} (v${version})`;
}

async function orderDeletion({ admin }: ActionRegion, { spec, view }: WantedObject): Promise<string> {
  const { version } = await admin.deleteObject(refOf(view));
  return `requested the deletion of ${spec.k8sName} (v${version})`;
}

interface Workload extends KubeObject {
  readonly spec?: { readonly replicas?: number; readonly selector: object; readonly template?: object };
}

function editWorkload(
  { kind, ...required }: { readonly kind: ResourceKind<Workload>; readonly template?: object },
  region: ActionRegion,
  { kind: kindName, id, spec, view: { namespace } }: WantedObject<"deployment" | "sentinel">,
  signal: AbortSignal,
): Promise<string> {
  const { k8sName: name, projectId } = spec;
  const replicas = spec.replicas + 3;
  const selector = { matchLabels: { [kindOf(kindName).idLabel]: id } };
  const manifest: Workload = {
    metadata: { namespace, name, labels: { [labelKeys.projectId]: "edited" } },
    spec: { replicas, selector, ...required },
  };
  const told = `set ${replicas} replicas and another project on ${kind.kind} ${name}`;
  const isRepaired = (live: Workload) =>
    live.spec?.replicas === spec.replicas && live.metadata?.labels?.[labelKeys.projectId] === projectId;
  return editByHand(region, { kind, manifest, told, isRepaired }, signal);
}

function refOf({ ref }: WantedObject["view"]) {
  return ref === undefined ? {} : { ref };
}

function podsOf({ kind, id, spec: { k8sName: name }, view: { namespace } }: WantedObject) {
  return { namespace, name, labelSelector: `${kindOf(kind).idLabel}=${id}` };
}

/** The sample's own text, so it is known to be JSON. */
function documentOf({ policy }: WantedObject<"policy">["spec"]): CustomObject {
  return JSON.parse(new TextDecoder().decode(policy));
}
